"""A turn of a chat, followed for the chat kit until it ends or the page leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from starlette.responses import Response
from starlette.types import Scope, Send

from crocevia.asgi.hangup import race, wait_disconnect
from crocevia.asgi.stream import EVENT_HEADERS, PING
from crocevia.panel.kit_wire import event
from crocevia.panel.turn_events import TurnEvents
from crocevia.runtime.turns import Row, Turns


class TeamChat:
    """One conversation of the playground with a team: a chat, and the turn that is followed."""

    def __init__(self, chat_id: str, user_id: str) -> None:
        self.chat_id = chat_id
        self.user_id = user_id
        self.message_id = ""
        """The page's own id of the message that began the turn."""
        self.turn = ""
        self.starts_after = 0
        """The seq before the turn's first entry."""
        self.sent_events = 0
        """How many events of the turn the page has had."""
        self.open_streams = 0
        """How many are following."""
        self.approvals: dict[str, str] = {}
        """The kit's id of an action to the approval's id."""

    def follow(self, turn: str, message_id: str, starts_after: int) -> None:
        """Follow another turn from its beginning."""
        self.turn, self.message_id, self.starts_after = turn, message_id, starts_after
        self.sent_events, self.approvals = 0, {}


class TurnStream(Response):
    """Sends a turn's events to the page. after: how many of them it has already."""

    def __init__(self, turns: Turns, chat: TeamChat, events: TurnEvents, after: int) -> None:
        super().__init__()
        self._turns = turns
        self._chat = chat
        self._events = events
        self._after = after
        self._count = 0

    async def __call__(self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        chat = self._chat
        feed = await self._turns.events(chat.user_id, chat.chat_id, chat.starts_after)

        async def follow() -> None:
            async with aclosing(feed.rows()) as batches:
                async for rows in batches:
                    new = self._new_events(rows)
                    await send({"type": "http.response.body", "body": new or PING, "more_body": True})
                    if self._events.over:
                        return

        await send({"type": "http.response.start", "status": 200, "headers": list(EVENT_HEADERS)})
        chat.open_streams += 1
        try:
            await race(follow(), wait_disconnect(receive), self._turns.closed.wait())
        finally:
            chat.open_streams -= 1
        with suppress(OSError, RuntimeError):
            await send({"type": "http.response.body", "body": b""})

    def _new_events(self, rows: list[Row]) -> bytes:
        """The events of these rows that the page has not had."""
        out = bytearray()
        for row in rows:
            for name, data in self._events.of(row.entry):
                self._count += 1
                if self._count > self._after:
                    out += event(name, data)
        self._chat.sent_events = max(self._chat.sent_events, self._count)
        self._chat.approvals = self._events.approvals
        return bytes(out)
