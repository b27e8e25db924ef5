"""A turn of a chat, followed for the chat kit until it ends or the page leaves."""

from __future__ import annotations

from contextlib import aclosing, suppress

from starlette.responses import Response

from crocevia.asgi.hangup import race, wait_disconnect
from crocevia.asgi.stream import EVENT_HEADERS, PING
from crocevia.panel.services import Receive, Scope, Send
from crocevia.panel.turn_events import TurnEvents, spell
from crocevia.runtime.turns import Row, Turns


class Talk:
    """One conversation of the playground with a team: a chat, and the turn that is followed."""

    def __init__(self, chat_id: str, user_id: str) -> None:
        self.chat_id = chat_id
        self.user_id = user_id
        self.question = ""
        """The page's own id of what it asked."""
        self.turn = ""
        self.begin = 0
        """The seq after which the turn starts."""
        self.sent = 0
        """Events of the turn that the page has had."""
        self.readers = 0
        """Streams that are open."""
        self.approvals: dict[str, str] = {}


class TurnStream(Response):
    """after: events of the turn that the page has already."""

    def __init__(self, turns: Turns, talk: Talk, events: TurnEvents, after: int) -> None:
        super().__init__()
        self._turns = turns
        self._talk = talk
        self._events = events
        self._after = after
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        talk = self._talk
        feed = await self._turns.events(talk.user_id, talk.chat_id, talk.begin)

        async def follow() -> None:
            async with aclosing(feed.rows()) as batches:
                async for rows in batches:
                    news = self._news(rows)
                    await send({"type": "http.response.body", "body": news or PING, "more_body": True})
                    if self._events.over:
                        return

        await send({"type": "http.response.start", "status": 200, "headers": list(EVENT_HEADERS)})
        talk.readers += 1
        try:
            await race(follow(), wait_disconnect(receive), self._turns.closed.wait())
        finally:
            talk.readers -= 1
        with suppress(OSError, RuntimeError):
            await send({"type": "http.response.body", "body": b""})

    def _news(self, rows: list[Row]) -> bytes:
        """What the page has not had of these rows."""
        out = bytearray()
        for row in rows:
            for name, data in self._events.of(row.entry):
                self._count += 1
                if self._count > self._after:
                    out += spell(name, data)
        self._talk.sent = max(self._talk.sent, self._count)
        self._talk.approvals = self._events.approvals
        return bytes(out)
