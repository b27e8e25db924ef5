"""Rows of users."""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy import CheckConstraint, Column, Float, Table, Text, bindparam, select, text, update

from crocevia.core.catalogue import UserSpec
from crocevia.core.ids import new_id
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting, setting

# allowance: JSON of what the user may use of models in a day.
users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("allowance", Text, nullable=False, server_default=text("'{}'")),
    CheckConstraint("role in ('operator', 'member')", name="role"),
)


_BOUNDED: Final = select(users.c.id, users.c.allowance).where(users.c.allowance != "{}")
_NAMED: Final = select(users.c.id).where(users.c.name == bindparam("called")).order_by(users.c.id).limit(1)
_ALLOW: Final = update(users).where(users.c.id == bindparam("which")).values(setting("allowance", "updated_at"))
_ADD: Final = inserting(users, "id", "name", "role", "created_at", "updated_at")


def allowances(tx: Transaction) -> dict[str, UserSpec]:
    """What users may use, by user id; those with no bounds are left out."""
    found = {}
    for row in tx.all(_BOUNDED):
        found[row.id] = msgspec.json.decode(row.allowance, type=UserSpec)
    return found


def find_named(tx: Transaction, name: str) -> str | None:
    """The id of the first user of this name."""
    found: str | None = tx.scalar(_NAMED, called=name)
    return found


def set_allowance(tx: Transaction, user_id: str, spec: UserSpec, now: float) -> None:
    """What the user may use from now on."""
    bounds = "{}" if spec == UserSpec(name=spec.name) else msgspec.json.encode(spec).decode()
    tx.run(_ALLOW, which=user_id, allowance=bounds, updated_at=now)


def add(tx: Transaction, name: str, role: str, now: float) -> str:
    """The new user's id. role: `operator` or `member`."""
    user_id = new_id("usr")
    tx.run(_ADD, id=user_id, name=name, role=role, created_at=now, updated_at=now)
    return user_id
