"""Pieces of ASGI that every door uses: bounded bodies, event streams, JSON answers, unexpected errors.

No protocol lives here: statuses, words and shapes of errors are each door's own.
"""
