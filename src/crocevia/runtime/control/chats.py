"""Chats: durable conversations in a workspace, each with its team."""

from __future__ import annotations

from typing import Final

from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.control import workspaces
from crocevia.runtime.control.context import Control, missing
from crocevia.storage import chats as rows
from crocevia.storage import teams
from crocevia.storage.chats import LAST, Chat
from crocevia.storage.database import Transaction

__all__ = ["LAST", "PAGE", "Chat", "create", "find", "get", "listed", "owned"]

PAGE: Final = 1000  # chats in one list; clients of the contract cannot ask for the next


async def create(control: Control, user_id: str, workspace_id: str, team_id: str) -> Chat:
    """Raises GatewayError: NOT_FOUND without the workspace, INVALID_REQUEST without the team."""
    now = control.clock()

    def work(tx: Transaction) -> Chat:
        workspaces.owned(tx, user_id, workspace_id)
        if teams.find(tx, user_id, team_id) is None:
            raise GatewayError(Reason.TEAM_WRONG, param="team_id")
        return rows.add(tx, user_id, workspace_id, team_id, now)

    return await control.database.write(work)


async def listed(control: Control, user_id: str, workspace_id: str, before: str, most: int) -> list[Chat]:
    """The chats born before the chat `before` (LAST: all), newest first. Raises GatewayError(NOT_FOUND)."""

    def work(tx: Transaction) -> list[Chat]:
        workspaces.owned(tx, user_id, workspace_id)
        return rows.page(tx, user_id, workspace_id, before, most)

    return await control.database.read(work)


async def get(control: Control, user_id: str, workspace_id: str, chat_id: str) -> Chat:
    """Raises GatewayError(NOT_FOUND)."""
    return await control.database.read(lambda tx: owned(tx, user_id, workspace_id, chat_id))


async def find(control: Control, user_id: str, chat_id: str) -> Chat:
    """The user's chat, in whichever workspace. Raises GatewayError(NOT_FOUND)."""
    found = await control.database.read(lambda tx: rows.find(tx, user_id, chat_id))
    if found is None:
        raise missing("chat")
    return found


def owned(tx: Transaction, user_id: str, workspace_id: str, chat_id: str) -> Chat:
    """The user's chat in this workspace. Raises GatewayError(NOT_FOUND)."""
    found = rows.find(tx, user_id, chat_id)
    if found is None or found.workspace_id != workspace_id:
        raise missing("chat")
    return found
