"""Rows of workspaces, each seen only with its owner."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import Column, Float, ForeignKey, Table, Text, bindparam, func, select, text, update

from crocevia.core.ids import new_id
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting, packed, setting, unpacked
from crocevia.storage.statements import Row

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("metadata", Text, nullable=False, server_default=text("'{}'")),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
)


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """A boundary of isolation. Times are Unix seconds."""

    id: str
    user_id: str
    name: str
    metadata: dict[str, Any]
    created_at: float
    updated_at: float


_OWNED: Final = workspaces.c.user_id == bindparam("owner")
_LIST: Final = select(workspaces).where(_OWNED).order_by(workspaces.c.id).limit(bindparam("most"))
_FIND: Final = select(workspaces).where(workspaces.c.id == bindparam("which"), _OWNED)
_COUNT: Final = select(func.count()).select_from(workspaces).where(_OWNED)
_ADD: Final = inserting(workspaces, "id", "user_id", "name", "metadata", "created_at", "updated_at")
_SET: Final = (
    update(workspaces).where(workspaces.c.id == bindparam("which")).values(setting("name", "metadata", "updated_at"))
)


def count(tx: Transaction, user_id: str) -> int:
    """How many the user has."""
    found: int = tx.scalar(_COUNT, owner=user_id)
    return found


def add(tx: Transaction, user_id: str, name: str, metadata: dict[str, Any], now: float) -> Workspace:
    """A new workspace."""
    made = Workspace(id=new_id("wsp"), user_id=user_id, name=name, metadata=metadata, created_at=now, updated_at=now)
    tx.run(_ADD, **msgspec.structs.asdict(made) | {"metadata": packed(metadata)})
    return made


def find(tx: Transaction, user_id: str, workspace_id: str) -> Workspace | None:
    """The user's workspace of this id."""
    row = tx.first(_FIND, owner=user_id, which=workspace_id)
    return None if row is None else _value(row)


def listed(tx: Transaction, user_id: str, most: int) -> list[Workspace]:
    """The user's workspaces, oldest first."""
    return [_value(row) for row in tx.all(_LIST, owner=user_id, most=most)]


def save(tx: Transaction, workspace: Workspace) -> None:
    """Write what can change: name and metadata."""
    tx.run(
        _SET,
        which=workspace.id,
        name=workspace.name,
        metadata=packed(workspace.metadata),
        updated_at=workspace.updated_at,
    )


def _value(row: Row) -> Workspace:
    return Workspace(
        id=row.id,
        user_id=row.user_id,
        name=row.name,
        metadata=unpacked(row.metadata),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
