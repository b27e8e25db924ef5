"""Envai's API and the Agent Team Protocol. Its words live in `wire/`, `errors.py` and `negotiation.py` only."""

from crocevia.doors.atp.door import AtpDoor

__all__ = ["AtpDoor"]
