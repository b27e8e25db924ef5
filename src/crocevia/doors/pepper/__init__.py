"""Pepper Agent API v1: the brain, not the hands. Its Italian words live in `wire*.py` and `errors.py` only."""
