"""A journal that leaves nothing behind: for runs that nobody comes back to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crocevia.core.turn import entries as e
from crocevia.log import Appended, Command, Effect, Fence
from crocevia.runtime.turns.chat_sessions import ChatSession
from crocevia.storage.chats import Chat

_NOWHERE: Final = Fence("", 0, "", 0, "")
_DONE: Final = Appended(1, 0, "")


class NullJournal:
    """A `driver.Journal`. What is appended is known to the turn already, and to nobody else."""

    async def append(
        self, fence: Fence, entries: Sequence[e.Entry], effects: Sequence[Effect] = (), *, read_upto: int | None = None
    ) -> Appended:
        return _DONE

    async def commands(self, chat: str, after: int = 0) -> list[Command]:
        return []


def unrecorded_session(user_id: str, workspace_id: str, turn_id: str) -> ChatSession:
    """A session that is in no list."""
    chat = Chat(
        id=turn_id, workspace_id=workspace_id, user_id=user_id, team_id="", title=None, created_at=0, updated_at=0
    )
    return ChatSession(chat, _NOWHERE, [])
