"""An event stream to one client: headers as late as honesty allows, pings in silence, an end on every path."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from crocevia.asgi.types import Headers, Send

EVENT_STREAM: Final = b"text/event-stream; charset=utf-8"
PING: Final = b": ping\n\n"

EVENT_HEADERS: Final[Headers] = (
    (b"content-type", EVENT_STREAM),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class EventStream:
    """Use it as `async with EventStream(…) as stream`. `started`: the status is out, and it was 200. `sent`: bytes.

    The first `write` sends the headers, or the first ping does after `ping_seconds` without a write (None: nobody
    pings here). headers: more of them, asked for at that moment.
    """

    __slots__ = ("_headers", "_last", "_loop", "_ping_seconds", "_pinging", "_send", "_timer", "sent", "started")

    def __init__(self, send: Send, ping_seconds: float | None, headers: Callable[[], Headers] = list) -> None:
        self.started = False
        self.sent = 0
        self._send = send
        self._headers = headers
        self._ping_seconds = ping_seconds or 0.0
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._pinging: asyncio.Task[None] | None = None

    async def __aenter__(self) -> EventStream:
        if self._ping_seconds:
            self._timer = self._loop.call_at(self._last + self._ping_seconds, self._ring)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop_timer()
        if self._pinging is not None:
            self._pinging.cancel()

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Send complete events; waits while the client does not read."""
        if self._pinging is not None:
            await asyncio.wait((self._pinging,))  # not the task itself: it would be cancelled with us
            self._pinging = None
        if not self.started:
            await self.start()
        self._last = self._loop.time()
        self.sent += len(data)
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def end(self, data: bytes) -> None:
        """Send the last event and close."""
        self._stop_timer()
        await self.write(data, more=False)

    async def start(self) -> None:
        """Send the headers."""
        self.started = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [*EVENT_HEADERS, *self._headers()]})

    def _ring(self) -> None:
        # One timer, moved only when it rings; a task exists only while a ping is being sent.
        due = self._last + self._ping_seconds
        now = self._loop.time()
        if now < due:
            self._timer = self._loop.call_at(due, self._ring)
            return
        self._last = now
        self._timer = self._loop.call_at(now + self._ping_seconds, self._ring)
        if self._pinging is None or self._pinging.done():
            self._pinging = self._loop.create_task(self._ping())

    async def _ping(self) -> None:
        if not self.started:
            await self.start()
        self.sent += len(PING)
        await self._send({"type": "http.response.body", "body": PING, "more_body": True})

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
