"""HTTP on one connection: uvicorn's protocol, minus its patience with peers that have stopped reading or sending."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import Any, ClassVar, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

STALL_SECONDS = 120.0
HEAD_SECONDS = 30.0
SILENCE_SECONDS = 60.0
LARGEST_HEAD: Final = 64 * 1024
_HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
_BETWEEN, _HEAD, _BODY = range(3)  # what of a message the peer is sending
_SWITCHED = b"HTTP/1.1 101"
_OFFER: Final = re.compile(rb"\r\nupgrade:[ \t]*(h2c|websocket)[ \t]*(?=\r|$)", re.IGNORECASE)


class Joined:
    """A transport that sends the head of an answer together with what follows it at once: one system call less.

    uvicorn writes them one after the other. A head that nothing follows in this turn of the loop goes alone. Once the
    connection has become a WebSocket, everything that is written in one turn of the loop goes together.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._gathering = False
        self._frames: list[bytes] = []

    def write(self, data: bytes) -> None:
        if self._gathering:
            if not self._frames:
                self._loop.call_soon(self._flush)
            self._frames.append(data)
            return
        if data.startswith(_SWITCHED):
            self._gathering = True
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1."):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        pieces, self._head, self._frames = [self._head, *self._frames], b"", []
        if data := b"".join(pieces):
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """Aborts the connection when its output has been stuck for `stall_seconds`.

    The kernel alone would keep a stalled reader's socket, and what is queued for it, for as long as the peer
    acknowledges; and closing politely waits for that queue.

    Closes it when the head of a request has not come within `head_seconds` of the connection or of its first byte,
    when it is larger than LARGEST_HEAD, and when a body that was announced pauses for `silence_seconds`: silent peers
    would hold their sockets for ever.
    """

    stall_seconds: ClassVar[float] = STALL_SECONDS
    head_seconds: ClassVar[float] = HEAD_SECONDS
    silence_seconds: ClassVar[float] = SILENCE_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stalled: asyncio.TimerHandle | None = None
        self._phase = _BETWEEN
        self._head_size = 0  # bytes of a head that is not complete
        self._owed: asyncio.TimerHandle | None = None  # until when the peer must have sent something

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(cast("asyncio.Transport", Joined(transport, self.loop)))
        self._allow(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        # Java's client offers HTTP/2 with every request. An offer may be ignored (RFC 9110, 7.8), but the parser
        # takes it for accepted and drops the body. WebSockets begin with a GET; what asks for one and has a body
        # would wait for ever.
        offers = b"h2c" in data or (b"websocket" in data and not data.startswith(b"GET "))
        if offers and (self.cycle is None or self.cycle.response_complete):
            head, gap, body = data.partition(b"\r\n\r\n")
            data = _OFFER.sub(b"", head) + gap + body
        super().data_received(data)
        if self in self.connections:  # else it has become a WebSocket, and belongs to another protocol
            self._expect(len(data))

    def _expect(self, size: int) -> None:
        """After `size` bytes came: until when more has to come."""
        if self._phase == _BODY:
            self._forgive()
            self._allow(self.silence_seconds)
        elif self._phase == _HEAD:
            self._allow(self.head_seconds)
            self._head_size += size
            if self._head_size > LARGEST_HEAD:
                self.transport.write(_HEAD_TOO_LARGE)
                self.transport.close()
        elif self.cycle is None or self.cycle.response_complete:  # blank lines, or the end of a body refused already
            self._allow(self.timeout_keep_alive)
        else:
            self._forgive()

    def on_message_begin(self) -> None:
        self._phase = _HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._phase = _BODY
        self._head_size = 0
        self._forgive()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._phase = _BETWEEN
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_stall()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_stall()
        self._forgive()
        super().connection_lost(exc)

    def _allow(self, seconds: float) -> None:
        if self._owed is None:
            self._owed = self.loop.call_later(seconds, self._give_up)

    def _forgive(self) -> None:
        if self._owed is not None:
            self._owed.cancel()
            self._owed = None

    def _give_up(self) -> None:
        self._owed = None
        if self.flow.read_paused:  # it is we who do not read
            self._allow(self.silence_seconds)
        else:
            self.transport.close()

    def _forget_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def listen(host: str, port: int) -> socket.socket:
    """A listening socket whose connections give up on a peer that is no longer there. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; inherited by every accepted connection
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALL_SECONDS * 1000))
        listener.bind((host, port))
        listener.listen(2048)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
