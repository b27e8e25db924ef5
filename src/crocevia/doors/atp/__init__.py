"""Envai's API and the Agent Team Protocol. Its words live in `wire/`, `errors.py` and `negotiation.py` only."""

from .app import AtpDoor

__all__ = ["AtpDoor"]
