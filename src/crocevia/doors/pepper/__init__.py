"""Pepper Agent API v1: the brain, not the hands. Its Italian words live in `wire*.py` and `errors.py` only."""

from crocevia.doors.pepper.agent import AgentEndpoint
from crocevia.doors.pepper.capabilities import CapabilitiesEndpoint
from crocevia.doors.pepper.classic import ClassicEndpoint
from crocevia.doors.pepper.door import ADDRESSES, PepperDoor
from crocevia.doors.pepper.errors import refuse
from crocevia.doors.pepper.kit import KitEndpoint
from crocevia.doors.pepper.verify import VerifyEndpoint

__all__ = [
    "ADDRESSES",
    "AgentEndpoint",
    "CapabilitiesEndpoint",
    "ClassicEndpoint",
    "KitEndpoint",
    "PepperDoor",
    "VerifyEndpoint",
    "refuse",
]
