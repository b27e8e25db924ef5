"""Client tools: what a user's own program does for their agents."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from crocevia.core.declared import Refused
from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime import json_schema
from crocevia.runtime.control.context import MOST, Control, check_room, missing
from crocevia.storage import user_tools as rows
from crocevia.storage.database import Transaction
from crocevia.storage.user_tools import UserTool

__all__ = ["RESERVED", "UserTool", "create", "delete", "get", "listed", "update"]

RESERVED: Final = frozenset(
    {
        *("read", "list", "stat", "write", "execute"),
        *("wiki_read", "wiki_ls", "wiki_write", "skill_read", "skill_list", "skill_write"),
        *("exa_search", "exa_contents", "calculator", "convert_units", "delegate_task", "set_chat_title"),
    }
)


async def create(
    control: Control,
    user_id: str,
    name: str,
    parameters: dict[str, Any],
    description: str | None,
    timeout_seconds: int,
) -> UserTool:
    """Raises GatewayError(INVALID_REQUEST): a name that is taken or reserved, parameters that are no JSON Schema."""
    if name in RESERVED:
        raise GatewayError(Reason.NAME_RESERVED, param="name")
    _check(parameters)
    now = control.clock()

    def work(tx: Transaction) -> UserTool:
        check_room(rows.count(tx, user_id))
        if rows.find(tx, user_id, name) is not None:
            raise GatewayError(Reason.NAME_TAKEN, param="name")
        return rows.add(tx, user_id, name, description, parameters, timeout_seconds, now)

    return await control.database.write(work)


async def listed(control: Control, user_id: str) -> list[UserTool]:
    """Oldest first."""
    return await control.database.read(lambda tx: rows.listed(tx, user_id, MOST))


async def get(control: Control, user_id: str, name: str) -> UserTool:
    """Raises GatewayError(NOT_FOUND)."""
    return await control.database.read(lambda tx: _owned(tx, user_id, name))


async def update(control: Control, user_id: str, name: str, changes: dict[str, Any]) -> UserTool:
    """changes: of description, parameters and timeout_seconds. Raises GatewayError: NOT_FOUND, INVALID_REQUEST."""
    now = control.clock()
    if "parameters" in changes:
        _check(changes["parameters"])

    def work(tx: Transaction) -> UserTool:
        changed = msgspec.structs.replace(_owned(tx, user_id, name), **changes, updated_at=now)
        rows.save(tx, changed)
        return changed

    return await control.database.write(work)


async def delete(control: Control, user_id: str, name: str) -> None:
    """Agents that name it simply do not get it any more. Raises GatewayError(NOT_FOUND)."""
    if not await control.database.write(lambda tx: rows.drop(tx, user_id, name)):
        raise missing("tool")


def _check(parameters: dict[str, Any]) -> None:
    wrong = json_schema.problems(parameters, "parameters")
    if wrong:
        raise Refused(wrong)


def _owned(tx: Transaction, user_id: str, name: str) -> UserTool:
    found = rows.find(tx, user_id, name)
    if found is None:
        raise missing("tool")
    return found
