"""Workspaces: what a user keeps apart."""

from __future__ import annotations

from typing import Any

import msgspec

from crocevia.runtime.control.context import MOST, Control, check_room, missing
from crocevia.storage import workspaces as rows
from crocevia.storage.database import Transaction
from crocevia.storage.workspaces import Workspace

__all__ = ["Workspace", "create", "get", "listed", "update"]


async def create(control: Control, user_id: str, name: str, metadata: dict[str, Any]) -> Workspace:
    """Raises GatewayError(INVALID_REQUEST) when the user has MOST of them."""
    now = control.clock()

    def work(tx: Transaction) -> Workspace:
        check_room(rows.count(tx, user_id))
        return rows.add(tx, user_id, name, metadata, now)

    return await control.database.write(work)


async def listed(control: Control, user_id: str) -> list[Workspace]:
    """Oldest first."""
    return await control.database.read(lambda tx: rows.listed(tx, user_id, MOST))


async def get(control: Control, user_id: str, workspace_id: str) -> Workspace:
    """Raises GatewayError(NOT_FOUND)."""
    return await control.database.read(lambda tx: owned(tx, user_id, workspace_id))


async def update(control: Control, user_id: str, workspace_id: str, changes: dict[str, Any]) -> Workspace:
    """changes: of `name` and `metadata`. Raises GatewayError(NOT_FOUND)."""
    now = control.clock()

    def work(tx: Transaction) -> Workspace:
        changed = msgspec.structs.replace(owned(tx, user_id, workspace_id), **changes, updated_at=now)
        rows.save(tx, changed)
        return changed

    return await control.database.write(work)


def owned(tx: Transaction, user_id: str, workspace_id: str) -> Workspace:
    """The user's workspace. Raises GatewayError(NOT_FOUND)."""
    found = rows.find(tx, user_id, workspace_id)
    if found is None:
        raise missing("workspace")
    return found
