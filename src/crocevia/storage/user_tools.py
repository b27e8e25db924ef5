"""Rows of client tools: registered by a user, by name."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import Column, Float, ForeignKey, Index, Integer, Table, Text, bindparam, delete, func, select, update

from crocevia.core.ids import new_id
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting, packed, setting, unpacked
from crocevia.storage.statements import Row

# parameters: a JSON schema whose root is an object.
user_tools = Table(
    "user_tools",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("parameters", Text, nullable=False),
    Column("timeout_seconds", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Index(None, "user_id", "name", unique=True),
)


class UserTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the caller's own program runs."""

    id: str
    user_id: str
    name: str
    description: str | None
    parameters: dict[str, Any]
    """JSON schema of its arguments."""
    timeout_seconds: int
    created_at: float
    updated_at: float


_OWNED: Final = user_tools.c.user_id == bindparam("owner")
_LIST: Final = select(user_tools).where(_OWNED).order_by(user_tools.c.id).limit(bindparam("most"))
_FIND: Final = select(user_tools).where(_OWNED, user_tools.c.name == bindparam("called"))
_COUNT: Final = select(func.count()).select_from(user_tools).where(_OWNED)
_DROP: Final = delete(user_tools).where(_OWNED, user_tools.c.name == bindparam("called"))
_ADD: Final = inserting(user_tools, *UserTool.__struct_fields__)
_SET: Final = (
    update(user_tools)
    .where(user_tools.c.id == bindparam("which"))
    .values(setting("description", "parameters", "timeout_seconds", "updated_at"))
)


def count(tx: Transaction, user_id: str) -> int:
    """How many the user has."""
    found: int = tx.scalar(_COUNT, owner=user_id)
    return found


def add(
    tx: Transaction,
    user_id: str,
    name: str,
    description: str | None,
    parameters: dict[str, Any],
    timeout_seconds: int,
    now: float,
) -> UserTool:
    """A new tool. The name must be free."""
    made = UserTool(
        id=new_id("twl"),
        user_id=user_id,
        name=name,
        description=description,
        parameters=parameters,
        timeout_seconds=timeout_seconds,
        created_at=now,
        updated_at=now,
    )
    tx.run(_ADD, **msgspec.structs.asdict(made) | {"parameters": packed(parameters)})
    return made


def find(tx: Transaction, user_id: str, name: str) -> UserTool | None:
    """The user's tool of this name."""
    row = tx.first(_FIND, owner=user_id, called=name)
    return None if row is None else _value(row)


def listed(tx: Transaction, user_id: str, most: int) -> list[UserTool]:
    """The user's tools, oldest first."""
    return [_value(row) for row in tx.all(_LIST, owner=user_id, most=most)]


def save(tx: Transaction, tool: UserTool) -> None:
    """Write what can change: everything but the name."""
    tx.run(
        _SET,
        which=tool.id,
        description=tool.description,
        parameters=packed(tool.parameters),
        timeout_seconds=tool.timeout_seconds,
        updated_at=tool.updated_at,
    )


def drop(tx: Transaction, user_id: str, name: str) -> bool:
    """Remove the tool; False if there was none."""
    return tx.run(_DROP, owner=user_id, called=name) == 1


def _value(row: Row) -> UserTool:
    return UserTool(**row._asdict() | {"parameters": unpacked(row.parameters)})
