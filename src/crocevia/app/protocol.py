"""HTTP on one connection: uvicorn's protocol with our own exchanges (`exchange.py`), which cost half as much.

And without its patience with peers that have stopped reading or sending.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import deque
from contextlib import suppress
from typing import Any, ClassVar, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .exchange import Exchange

STALL_SECONDS = 120.0
MOST_FILES: Final = 65_536
HEAD_SECONDS = 30.0
SILENCE_SECONDS = 60.0
LARGEST_HEAD: Final = 64 * 1024
_HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
_BETWEEN, _HEAD, _BODY = range(3)  # what of a message the peer is sending
_OFFER: Final = re.compile(rb"\r\nupgrade:[ \t]*(h2c|websocket)[ \t]*(?=\r|$)", re.IGNORECASE)


class Gathered:
    """The transport of a WebSocket: everything that is written in one turn of the loop goes out together."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._frames: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._frames:
            self._loop.call_soon(self._flush)
        self._frames.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        frames, self._frames = self._frames, []
        if data := b"".join(frames):
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
    cycle: Exchange  # type: ignore[assignment]  # our own kind, with all that uvicorn asks of one
    pipeline: deque[tuple[Exchange, Any]]  # type: ignore[assignment]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stalled: asyncio.TimerHandle | None = None
        self._phase = _BETWEEN
        self._head_size = 0  # bytes of a head that is not complete
        self._owed: asyncio.TimerHandle | None = None  # until when the peer must have sent something

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
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
        self.connections.discard(self)
        self._unset_keepalive_if_required()
        if self.cycle is not None:
            self.cycle.disconnect()
        if self.flow is not None:
            self.flow.resume_writing()
        if exc is None:
            self.transport.close()
        self.parser = None  # type: ignore[assignment]  # as uvicorn has it

    def handle_websocket_upgrade(self) -> None:
        self.transport = cast("asyncio.Transport", Gathered(self.transport, self.loop))
        super().handle_websocket_upgrade()

    # what the parser finds

    def on_message_begin(self) -> None:
        self._phase = _HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._phase = _BODY
        self._head_size = 0
        self._forgive()
        parser, scope = self.parser, cast("dict[str, Any]", self.scope)
        version = parser.get_http_version()
        scope["method"] = parser.get_method().decode("ascii")
        if version != "1.1":
            scope["http_version"] = version
        if parser.should_upgrade() and self._should_upgrade():
            return
        raw_path, query = _parts(self.url)
        path = raw_path.decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"], scope["query_string"] = raw_path, query
        before = self.cycle
        keep_alive = version != "1.0" and bool(parser.should_keep_alive())
        self.cycle = Exchange(self, scope, asks=self.expect_100_continue, keep_alive=keep_alive)
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:  # it was sent before the one before it was answered
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        if self._is_for_nobody():
            return
        self.cycle.add_body(body)
        if len(self.cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        self._phase = _BETWEEN
        if not self._is_for_nobody():
            self.cycle.end_body()

    def _is_for_nobody(self) -> bool:
        return (self.parser.should_upgrade() and self._should_upgrade()) or self.cycle.response_complete

    def _start_asgi_task(self, cycle: Exchange, app: Any) -> None:  # type: ignore[override]  # our own kind of cycle
        task = self.loop.create_task(cycle.run(app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

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


def _parts(url: bytes) -> tuple[bytes, bytes]:
    """The path and the query of a request's target."""
    if url.startswith(b"/") and b"#" not in url:
        path, _, query = url.partition(b"?")
        return path, query
    parsed = httptools.parse_url(url)  # `GET http://host/path`, as proxies are asked
    return parsed.path or b"/", parsed.query or b""


def allow_files() -> None:
    """As many open files as this user may have: the usual 1,024 are fewer than the streams that fit on one core."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


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
