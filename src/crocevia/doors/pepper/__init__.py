"""Pepper Agent API v1: the brain, not the hands. Its Italian words live in `wire*.py` and `errors.py` only."""

from .agent import AgentEndpoint
from .capabilities import CapabilitiesEndpoint
from .classic import ClassicEndpoint
from .door import ADDRESSES, PepperDoor
from .errors import refuse
from .kit import KitEndpoint
from .verify import VerifyEndpoint

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
