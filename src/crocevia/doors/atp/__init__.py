"""Envai's API and the Agent Team Protocol. Its words live here and nowhere else."""

from crocevia.doors.atp.door import atp_door

__all__ = ["atp_door"]
