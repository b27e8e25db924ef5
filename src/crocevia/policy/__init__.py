"""From values alone: who may do what, how fast, at what cost. Nothing here waits, stores or reads a clock."""
