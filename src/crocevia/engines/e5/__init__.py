"""A small embedding model that runs inside, in a child process."""
