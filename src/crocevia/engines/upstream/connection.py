"""One HTTP/1.1 connection to a provider: sends a request, hands over what arrives, knows if it can serve again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

import httptools

from crocevia.engines.upstream import sockets
from crocevia.engines.upstream.sockets import Traffic

MAX_HEAD: Final = 256 * 1024  # bytes of status line and headers
HIGH_WATER: Final = 256 * 1024  # unread bytes after which the provider is made to wait


class ConnectionBroken(Exception):
    """The connection ended, or spoke something other than HTTP, before the answer was complete."""


class Connection(asyncio.Protocol):
    """Reads are pulled: `head()`, then `chunk()` until it is empty. One reader at a time.

    began: a byte of the answer has come. complete: the whole answer has. gone: called once when the connection ends.
    unread_for: seconds of a round trip, if it ended before the other side's system confirmed any byte of the request.
    """

    __slots__ = (
        "_broken",
        "_buffer",
        "_head_size",
        "_headed",
        "_keep_alive",
        "_lost",
        "_parser",
        "_paused",
        "_sent",
        "_size",
        "_skipping",
        "_socket",
        "_transport",
        "_until_end",
        "_waiter",
        "began",
        "complete",
        "gone",
        "headers",
        "idle_since",
        "on_complete",
        "served",
        "status",
        "unread_for",
    )

    def __init__(self, peer: socket.socket, gone: Callable[[Connection], None]) -> None:
        """peer: what its transport is made of, which is asked what the system knows; a transport's own view of it is
        slow with some event loops.
        """
        self.gone = gone
        self.served = 0
        self.idle_since = 0.0
        self.on_complete: Callable[[], None] | None = None
        self.unread_for: float | None = None
        self._transport: asyncio.Transport | None = None
        self._socket = peer
        self._sent: Traffic | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._lost = self._broken = self._paused = False
        self._parser = httptools.HttpResponseParser(self)
        self._reset()

    # what a client does with it

    def send(self, head: bytes, body: bytes | None) -> None:
        """Begin an exchange. The one before must be over."""
        assert self._transport is not None
        self._reset()
        self.complete = False
        self._sent = sockets.traffic(self._socket) if self.served else None  # on a new one, nobody asks
        self.served += 1
        if body is None:
            self._transport.write(head)
        elif len(body) < HIGH_WATER:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))

    async def head(self) -> int:
        """The status, once every header is here. Raises Cut."""
        while not self._headed:
            await self._wait()
        return self.status

    async def chunk(self) -> bytes:
        """Everything that has arrived, at least one byte; empty at the end. Raises Cut, after all that had arrived."""
        while not self._buffer:
            if self.complete:
                return b""
            await self._wait()
        pieces = self._buffer
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._size = 0
        if self._paused:
            self._resume()
        return data

    def skip(self, then: Callable[[], None]) -> None:
        """Throw the rest of the answer away as it comes, and call `then` at its end."""
        self._skipping = True
        self._buffer.clear()
        self._size = 0
        self.on_complete = then
        if self._paused:
            self._resume()

    @property
    def reusable(self) -> bool:
        """The answer is complete and both sides mean to go on."""
        return self.complete and self.open and self._keep_alive

    @property
    def open(self) -> bool:
        return not (self._lost or self._broken) and self._transport is not None and not self._transport.is_closing()

    @property
    def hung_up(self) -> bool:
        """The other side has closed it; this may not have been noticed yet."""
        return not self.open or sockets.hung_up(self._socket)

    def abort(self) -> None:
        """End it now, without waiting for what is unsent. Idempotent."""
        self._broken = True  # an end of our own making completes no answer
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    def data_received(self, data: bytes) -> None:
        if self.complete:  # nobody asked: whatever this is, it must not be taken for the next answer
            self.abort()
            return
        self.began = True
        if not self._headed:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):  # nobody asked for another protocol
            self.abort()
        if self._broken or (not self._headed and self._head_size > MAX_HEAD):
            self.abort()
        if self._size > HIGH_WATER and not (self.complete or self._paused):
            self._paused = True
            assert self._transport is not None
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._look_back()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        self._look_back()
        if self._headed and self._until_end and error is None and not self._broken:
            self.complete = True
        self.gone(self)
        self._wake()

    # httptools

    def on_status(self, status: bytes) -> None:
        """The reason phrase, which says nothing to us."""

    def on_message_begin(self) -> None:
        self._broken = self.complete  # a second answer where one was asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.complete:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        self.status = self._parser.get_status_code()
        if self.status < 200:
            self.headers.clear()  # an interim answer; the real one follows
            return
        self._until_end = not any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self.headers)
        self._keep_alive = bool(self._parser.should_keep_alive())  # the parser forgets it with the last byte
        self._headed = True

    def on_body(self, data: bytes) -> None:
        if not (self._skipping or self.complete):
            self._buffer.append(data)
            self._size += len(data)

    def on_message_complete(self) -> None:
        if self.complete or not self._headed:
            return
        self.complete = True
        self._until_end = False
        if self.on_complete is not None:
            then, self.on_complete = self.on_complete, None
            then()

    # inside

    def _reset(self) -> None:
        self.began = self._headed = self._skipping = self._until_end = self._keep_alive = False
        self.complete = True
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.on_complete = None
        self._buffer: list[bytes] = []
        self._size = self._head_size = 0

    async def _wait(self) -> None:
        if self._lost or self._broken:
            raise ConnectionBroken
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _look_back(self) -> None:
        """At the end, while the system still remembers: whether anything of the request arrived."""
        before, self._sent = self._sent, None
        now = sockets.traffic(self._socket) if before is not None and not self.began else None
        if before is not None and now is not None and now.acked == before.acked:
            self.unread_for = before.round_trip

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _resume(self) -> None:
        self._paused = False
        if self.open:
            assert self._transport is not None
            self._transport.resume_reading()
