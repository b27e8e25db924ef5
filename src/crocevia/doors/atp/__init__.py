"""Envai's API and the Agent Team Protocol. Its words live in `wire/`, `errors.py` and `negotiation.py` only."""

from crocevia.doors.atp.door import atp_door

__all__ = ["atp_door"]
