"""Bytes on the disk of a home: workspaces by path, everything else by id."""
