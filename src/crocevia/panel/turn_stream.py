"""A turn of a chat, followed for the chat kit until it ends or the page leaves."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from starlette.responses import Response

from crocevia.asgi.hangup import gone, until_first
from crocevia.asgi.stream import EVENT_HEADERS, PING
from crocevia.core.turn import entries as e
from crocevia.panel.services import Receive, Scope, Send
from crocevia.panel.turn_events import TurnEvents, spell
from crocevia.runtime.turns import Row, Turns

_HEAD: Final = struct.Struct(">QI")  # seq, size of the body


class Talk:
    """One conversation of the playground with a team: a chat, and the turn that is followed.

    begin: the seq after which the turn starts. shown: events of it that the page has had. turno: of the page's
    question. reading: how many streams are open.
    """

    def __init__(self, chat_id: str, user_id: str) -> None:
        self.chat_id = chat_id
        self.user_id = user_id
        self.turno = ""
        self.turn = ""
        self.begin = 0
        self.shown = 0
        self.reading = 0
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
        ended = asyncio.Event()

        async def write(data: bytes) -> None:
            news = self._news(data)
            await send({"type": "http.response.body", "body": news or PING, "more_body": True})
            if self._events.over:
                ended.set()

        await send({"type": "http.response.start", "status": 200, "headers": list(EVENT_HEADERS)})
        talk.reading += 1
        try:
            following = feed.run("rows", _packed, lambda: b"", write)
            await until_first(following, ended.wait(), gone(receive), self._turns.closed.wait())
        finally:
            talk.reading -= 1
        with suppress(OSError, RuntimeError):
            await send({"type": "http.response.body", "body": b""})

    def _news(self, data: bytes) -> bytes:
        """What the page has not had of these rows."""
        out = bytearray()
        for body in _rows(data):
            for name, said in self._events.of(e.decode(body)):
                self._count += 1
                if self._count > self._after:
                    out += spell(name, said)
        self._talk.shown = max(self._talk.shown, self._count)
        self._talk.approvals = self._events.approvals
        return bytes(out)


def _packed(row: Row) -> bytes:
    """A row among others: its JSON may hold line breaks, so its size stands before it."""
    return _HEAD.pack(row.seq, len(row.body)) + row.body


def _rows(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        _, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield data[at : at + size]
        at += size
