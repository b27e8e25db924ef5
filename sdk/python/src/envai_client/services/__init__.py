"""The façade: one service per kind of resource, in a sync and an async edition of equal shape."""
