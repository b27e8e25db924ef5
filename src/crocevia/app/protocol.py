"""HTTP on one connection: uvicorn's protocol with our own exchanges (`exchange.py`), which cost half as much.

And without its patience with peers that have stopped reading or sending.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from crocevia.app.exchange import Exchange
from crocevia.app.writing import Gathered, Stall

STALL_SECONDS = 120.0
MOST_FILES: Final = 65_536
HEAD_SECONDS = 30.0
SILENCE_SECONDS = 60.0
LARGEST_HEAD: Final = 64 * 1024
LINGER_SECONDS: Final = 5.0  # for who is still sending when the last answer of a connection has gone out
_MOST_WAITING: Final = 8  # requests of one connection that wait for their turn
_HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
_BETWEEN, _HEAD, _BODY = range(3)  # what of a message the peer is sending


def _refusal(status: str, text: str, *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", "content-type: text/plain; charset=utf-8", f"content-length: {len(text)}", *headers)
    return "\r\n".join((*lines, "connection: close", "", text)).encode()


_MALFORMED: Final = _refusal("400 Bad Request", "Invalid HTTP request received.")
_ONE_HOST: Final = _refusal("400 Bad Request", "A request has exactly one Host header: a name or an address.")
_NOT_CHUNKED: Final = _refusal("501 Not Implemented", "The only Transfer-Encoding is chunked.")
_CODED: Final = _refusal(
    "415 Unsupported Media Type", "Bodies are taken as they are, without Content-Encoding.", "accept-encoding: identity"
)
_HOST: Final = re.compile(rb"(?:[A-Za-z0-9._~-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?")


@lru_cache(maxsize=256)
def _is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


def _fault(headers: Iterable[tuple[bytes, bytes]], version: str) -> bytes | None:
    """The refusal of a head that two programs in a row could take for two things, or whose body nobody here reads."""
    hosts = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1 if _is_host(value) else 2
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            return _NOT_CHUNKED
        elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            return _CODED
    return None if hosts == 1 or (hosts == 0 and version == "1.0") else _ONE_HOST


class Protocol(HttpToolsProtocol):
    """Aborts the connection when its output has been stuck, or has hardly moved, for `stall_seconds`.

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
        self._stall: Stall | None = None
        self._phase = _BETWEEN
        self._unparsed = 0  # bytes since a head was complete or a body grew
        self._deadline: asyncio.TimerHandle | None = None  # until when the peer must have sent something
        self._answering: Exchange | None = None  # `cycle` is the newest, which may have to wait for its turn
        self._leaving = False
        self._fault: bytes | None = None  # what is said of a head that was refused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._start_deadline(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        if self._leaving:
            return
        self._unset_keepalive_if_required()
        self._unparsed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._consider(data[offer.args[0] :])
        except httptools.HttpParserError:
            self._refuse(self._fault or _MALFORMED)
        else:
            self._expect()

    def _consider(self, rest: bytes) -> None:
        """Take an offer of another protocol, or ignore it (RFC 9110, 7.8), as the parser cannot: it drops the body.

        Java's client offers HTTP/2 with every request. rest: what came after the head.
        """
        method = self.parser.get_method()
        if method == b"GET" and self._should_upgrade():
            if self.cycle is None or self.cycle.response_complete:
                self._clear_deadline()
                self.handle_websocket_upgrade()
            else:  # nobody would tell the request before it of a hang-up
                self.transport.close()
        elif method == b"CONNECT":
            self._refuse(_MALFORMED)
        else:
            kept = [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
            version = self.parser.get_http_version().encode()
            head = b"%b %b HTTP/%b\r\n%b\r\n" % (method, self.url, version, b"".join(kept))
            self.data_received(head + rest)

    def _expect(self) -> None:
        """After bytes came: until when more has to come."""
        if self._phase != _BETWEEN and self._unparsed > LARGEST_HEAD:  # a head, or trailers, or a chunk's extensions
            self._refuse(_HEAD_TOO_LARGE)
        elif self._phase == _BODY:
            self._clear_deadline()
            self._start_deadline(self.silence_seconds)
        elif self._phase == _HEAD:
            self._start_deadline(self.head_seconds)
        elif self.cycle is None or self.cycle.response_complete:  # blank lines, or the end of a body refused already
            self._start_deadline(self.timeout_keep_alive)
        else:
            self._clear_deadline()

    def _refuse(self, answer: bytes) -> None:
        """Say what is wrong with what came, unless an answer is on its way, and end the connection."""
        answering = self._answering
        begun = answering is not None and answering.response_started and not answering.response_complete
        if begun or self.pipeline:
            self.transport.close()
        elif not self.transport.is_closing():
            self.transport.write(answer)
            self.leave()

    def leave(self) -> None:
        """Close, after what is written has been read: closed at once, who is still sending would see a reset."""
        if not self.transport.can_write_eof():
            self.transport.close()
        if self.transport.is_closing():
            return
        self._leaving = True
        if self._answering is not None:
            self._answering.disconnect()
        self.transport.write_eof()
        self.flow.resume_reading()
        self._clear_deadline()
        self._deadline = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall is None:
            self._stall = Stall(self.transport, self.loop, self.stall_seconds)
        self._stall.watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_stall()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_stall()
        self._clear_deadline()
        self.connections.discard(self)
        self._unset_keepalive_if_required()
        if self._answering is not None:
            self._answering.disconnect()
        if self.flow is not None:
            self.flow.resume_writing()
        if exc is None:
            self.transport.close()
        self.parser = None  # type: ignore[assignment]  # as uvicorn has it
        # Each knows the other: what they hold would wait for the collector, and floods of refused callers hold much.
        self.cycle = self._answering = None  # type: ignore[assignment]
        self.pipeline.clear()

    def handle_websocket_upgrade(self) -> None:
        self.transport = cast("asyncio.Transport", Gathered(self.transport, self.loop, self.stall_seconds))
        super().handle_websocket_upgrade()

    # what the parser finds

    def on_message_begin(self) -> None:
        self._phase = _HEAD
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase == _HEAD:  # trailers are no headers: nobody in front of us has looked at them
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._phase = _BODY
        self._unparsed = 0
        self._clear_deadline()
        parser, scope = self.parser, cast("dict[str, Any]", self.scope)
        version = parser.get_http_version()
        self._fault = _fault(self.headers, version)
        if self._fault is not None:
            raise ValueError("a head that is refused")  # ends the parser's work; nobody sees it
        scope["method"] = parser.get_method().decode("ascii")
        if version != "1.1":
            scope["http_version"] = version
        if parser.should_upgrade():
            return
        raw_path, query = _parts(self.url)
        path = raw_path.decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"], scope["query_string"] = raw_path, query
        before = self.cycle
        keep_alive = version != "1.0" and bool(parser.should_keep_alive())
        asks = self.expect_100_continue and version != "1.0"
        self.cycle = Exchange(self, scope, asks=asks, keep_alive=keep_alive)
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:  # it was sent before the one before it was answered
            self.pipeline.appendleft((self.cycle, self.app))
            if len(self.pipeline) > _MOST_WAITING:  # not sooner: who does not read sees no hang-up
                self.flow.pause_reading()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        if self.cycle.response_complete:
            return
        self.cycle.add_body(body)
        if len(self.cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        self._phase = _BETWEEN
        if not (self.parser.should_upgrade() or self.cycle.response_complete):
            self.cycle.end_body()

    def _start_asgi_task(self, cycle: Exchange, app: Any) -> None:  # type: ignore[override]  # our own kind of cycle
        self._answering = cycle
        task = self.loop.create_task(cycle.run(app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _start_deadline(self, seconds: float) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(seconds, self._give_up)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.flow.read_paused:  # it is we who do not read
            self._start_deadline(self.silence_seconds)
        else:
            self.transport.close()

    def _forget_stall(self) -> None:
        if self._stall is not None:
            self._stall.forget()


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
