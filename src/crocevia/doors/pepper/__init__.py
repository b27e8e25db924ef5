"""Pepper Agent API v1: the brain, not the hands. Its Italian words live in `wire.py` and `errors.py` only."""

from .agent import AgentEndpoint
from .errors import refuse
from .kit import KitEndpoint

__all__ = ["AgentEndpoint", "KitEndpoint", "refuse"]
