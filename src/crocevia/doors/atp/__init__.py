"""Envai's API and the Agent Team Protocol. Its words live in `wire/`, `errors.py` and `negotiation.py` only."""

from .door import AtpDoor

__all__ = ["AtpDoor"]
