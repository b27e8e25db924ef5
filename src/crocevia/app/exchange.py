"""One request and its answer: what an application sees of a connection, and what goes out for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, Protocol

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

Application = Callable[..., Awaitable[None]]

_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_REFUSAL: Final = 400  # the least status of one
_SHORT: Final = 64 * 1024  # bytes
_BODILESS: Final = frozenset({204, 304})
_BROKEN: Final = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"21"),
    (b"connection", b"close"),
]


class HttpConnection(Protocol):
    """What an exchange needs of the connection it runs on."""

    transport: asyncio.Transport
    flow: FlowControl
    loop: asyncio.AbstractEventLoop
    logger: logging.Logger
    server_state: ServerState

    def on_response_complete(self) -> None:
        """Begin the next request that waits."""

    def leave(self) -> None:
        """Close once the peer has read the answer."""


class Exchange:
    """Acts as the ASGI `receive` callable, and can also notify of a disconnect: `on_hangup`.

    The head of an answer goes out together with what follows it in the same turn of the loop: one system call less.
    """

    __slots__ = (
        "_chunked",
        "_connection",
        "_has_data",
        "_head",
        "_headless",
        "_hung_up",
        "_left",
        "_wakeup",
        "asks",
        "body",
        "disconnected",
        "keep_alive",
        "more_body",
        "response_complete",
        "response_started",
        "scope",
    )

    def __init__(self, connection: HttpConnection, scope: dict[str, Any], *, asks: bool, keep_alive: bool) -> None:
        """asks: the client sends no body before it is told to (`Expect: 100-continue`)."""
        self.scope = scope
        self.asks = asks
        self.keep_alive = keep_alive
        self.body: bytes | bytearray = b""
        self.more_body = True
        self.disconnected = self.response_started = self.response_complete = False
        self._connection = connection
        self._headless = scope["method"] == "HEAD"
        self._chunked = False
        self._left: int | None = 0  # bytes of the body that the head promised and that are still to come
        self._head = b""
        self._has_data = False
        self._wakeup: asyncio.Event | None = None
        self._hung_up: Callable[[], None] | None = None

    async def run(self, application: Application) -> None:
        """Have the request answered; whatever goes wrong, the connection knows where it stands."""
        try:
            await application(self.scope, self, self.send)
        except asyncio.CancelledError:  # the process ends
            self._connection.transport.abort()
            raise
        except BaseException as error:
            self._connection.logger.error("Exception in ASGI application\n", exc_info=error)
            await self._break_off()
        else:
            if not (self.response_complete or self.disconnected):
                self._connection.logger.error("ASGI callable returned without completing response.")
                await self._break_off()

    async def _break_off(self) -> None:
        if self.response_started:
            self._flush()
            self._connection.transport.close()
            return
        await self.send({"type": "http.response.start", "status": 500, "headers": _BROKEN})
        await self.send({"type": "http.response.body", "body": b"Internal Server Error"})

    # what comes in

    async def __call__(self) -> dict[str, Any]:
        """`receive`: the next piece of the body, or that the client is gone or has its answer."""
        connection = self._connection
        if self.asks:
            self.asks = False
            if not (self.disconnected or connection.transport.is_closing()):
                connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not (self._has_data or self.disconnected or self.response_complete):
            connection.flow.resume_reading()
            if self._wakeup is None:
                self._wakeup = asyncio.Event()
            await self._wakeup.wait()
            self._wakeup.clear()
        self._has_data = False
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        connection.flow.resume_reading()
        body, self.body = self.body, b""
        return {"type": "http.request", "body": bytes(body), "more_body": self.more_body}

    @property
    def ready(self) -> bool:
        """All of the body that is still to be received is here: `receive` would not wait."""
        return self._has_data and not self.more_body

    def on_hangup(self, then: Callable[[], None] | None) -> None:
        """Call `then` once if the client hangs up before it has its answer; None: no longer."""
        self._hung_up = then
        if then is None:
            return
        self._connection.flow.resume_reading()  # else nobody would see it
        if self.disconnected:
            self._connection.loop.call_soon(self._notify)

    def add_body(self, data: bytes) -> None:
        if self.body:  # in pieces: adding up bytes would copy them with every piece
            if isinstance(self.body, bytes):
                self.body = bytearray(self.body)
            self.body += data
        else:
            self.body = data
        self._wake()

    def end_body(self) -> None:
        self.more_body = False
        self._wake()

    def disconnect(self) -> None:
        """The connection is gone."""
        self.body = b""
        if not self.response_complete:
            self.disconnected = True
            self._notify()
        self._wake()

    def _notify(self) -> None:
        then, self._hung_up = self._hung_up, None
        if then is not None:
            then()

    def _wake(self) -> None:
        self._has_data = True
        if self._wakeup is not None:
            self._wakeup.set()

    # what goes out

    async def send(self, message: dict[str, Any]) -> None:
        """`send`: the head, then the body. Waits while the client does not read."""
        flow = self._connection.flow
        if flow.write_paused and not self.disconnected:
            await flow.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if not self.response_started and kind == "http.response.start":
            self._start(message["status"], message.get("headers", ()))
        elif self.response_started and not self.response_complete and kind == "http.response.body":
            self._continue(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"Unexpected ASGI message '{kind}'")

    def _start(self, status: int, headers: Any) -> None:
        lines = [*self._connection.server_state.default_headers, *headers]
        self._chunked = measured = False
        for name, value in lines:
            if name == b"content-length":
                self._left = int(value)
                measured = True
            elif name == b"transfer-encoding":
                self._chunked = measured = True
            elif name == b"connection" and b"close" in value.lower():
                self.keep_alive = False
        if not (measured or self._headless or status in _BODILESS):
            self._unmeasured(lines)
        self._say_whether_it_ends(status, lines)
        head = b"".join([b"%b: %b\r\n" % line for line in lines])
        if not head.count(b"\n") == head.count(b"\r") == len(lines) or b"\0" in head:
            raise RuntimeError("a line break inside a header")
        self.response_started = True
        self.asks = False
        self._head = (_STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status) + head + b"\r\n"
        self._connection.loop.call_soon(self._flush)

    def _is_short(self) -> bool:
        """Whether the rest of the body is cheaper to pass over than a new connection."""
        declared = next((value for name, value in self.scope.get("headers", ()) if name == b"content-length"), b"")
        return declared.isdigit() and int(declared) <= _SHORT

    def _unmeasured(self, lines: list[tuple[bytes, bytes]]) -> None:
        if self.scope.get("http_version") == "1.0":  # knows no chunks: its body ends with the connection
            self._left = None
        else:
            self._chunked = True
            lines.append((b"transfer-encoding", b"chunked"))

    def _say_whether_it_ends(self, status: int, lines: list[tuple[bytes, bytes]]) -> None:
        # Will the body come, or the next request? Only a client that asked first knows. And who is refused while it
        # sends is told at once, and is not listened to for the rest of it.
        if self.more_body and (self.asks or (status >= _REFUSAL and not self._is_short())):
            self.keep_alive = False
        if not (self.keep_alive or any(name == b"connection" for name, _ in lines)):
            lines.append((b"connection", b"close"))

    def _continue(self, body: bytes, *, more: bool) -> None:
        data = b"" if self._headless else self._framed(body, more=more)
        if self._head:
            data, self._head = self._head + data, b""
        if data:
            self._connection.transport.write(data)
        if not more:
            self._end()

    def _framed(self, body: bytes, *, more: bool) -> bytes:
        if self._chunked:
            framed = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return framed if more else framed + b"0\r\n\r\n"
        if self._left is None:
            return body
        self._left -= len(body)
        if self._left < 0 or (self._left and not more):
            raise RuntimeError("a body of another length than its head says")
        return body

    def _flush(self) -> None:
        head, self._head = self._head, b""
        if head and not self._connection.transport.is_closing():
            self._connection.transport.write(head)

    def _end(self) -> None:
        self.response_complete = True
        self.body = b""  # of whoever was refused while it came
        self._hung_up = None
        self._wake()
        if self.keep_alive:
            self._connection.on_response_complete()
        elif self.more_body:
            self._connection.leave()
        else:
            self._connection.transport.close()
