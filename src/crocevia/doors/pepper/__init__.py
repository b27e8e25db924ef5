"""Pepper Agent API v1: the brain, not the hands. Its Italian words live in `wire*.py` and `errors.py` only."""

from crocevia.doors.pepper.door import agent_door, pepper_door

__all__ = ["agent_door", "pepper_door"]
