"""Rows of users."""

from __future__ import annotations

from typing import Final

from crocevia.core.ids import new_id

from .database import Transaction
from .rows import inserting
from .schema import users

_ADD: Final = inserting(users, "id", "name", "role", "created_at", "updated_at")


def add(tx: Transaction, name: str, role: str, now: float) -> str:
    """The new user's id. role: `operator` or `member`."""
    user_id = new_id("usr")
    tx.run(_ADD, id=user_id, name=name, role=role, created_at=now, updated_at=now)
    return user_id
