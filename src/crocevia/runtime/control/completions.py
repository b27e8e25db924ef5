"""Completions: what is known of the turns of a chat."""

from __future__ import annotations

import msgspec

from crocevia.runtime.control import chats
from crocevia.runtime.control.context import Control, missing
from crocevia.storage import completions as rows
from crocevia.storage.completions import Completion, Filter, Status
from crocevia.storage.database import Transaction

__all__ = ["Completion", "CompletionPage", "Filter", "Status", "get", "page"]


class CompletionPage(msgspec.Struct, frozen=True, kw_only=True):
    """items: newest first. total: of all pages."""

    items: list[Completion]
    total: int


async def page(
    control: Control, user_id: str, workspace_id: str, chat_id: str, wanted: Filter, number: int, size: int
) -> CompletionPage:
    """The page of this number, from 1. Raises GatewayError(NOT_FOUND)."""

    def work(tx: Transaction) -> CompletionPage:
        chats.owned(tx, user_id, workspace_id, chat_id)
        total = rows.count(tx, chat_id, wanted)
        skip = (number - 1) * size
        items = rows.page(tx, chat_id, wanted, skip, size) if skip < total else []
        return CompletionPage(items=items, total=total)

    return await control.database.read(work)


async def get(control: Control, user_id: str, workspace_id: str, chat_id: str, completion_id: str) -> Completion:
    """Raises GatewayError(NOT_FOUND)."""

    def work(tx: Transaction) -> Completion:
        chats.owned(tx, user_id, workspace_id, chat_id)
        found = rows.find(tx, chat_id, completion_id)
        if found is None:
            raise missing("completion")
        return found

    return await control.database.read(work)
