"""What doors, the panel and the command line see of rows."""
