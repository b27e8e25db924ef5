"""A provider on loopback that plays what a test wrote, byte by byte, and remembers who asked and who hung up.

    async with Provider(play(b"data: 1\\n\\n", gate, b"data: 2\\n\\n", CUT), answer(429, b"{}")) as provider:
        ... provider.url ...            # http://127.0.0.1:PORT
        provider.requests[0].body       # what came; .headers (lower-case names), .method, .path, .json()
        await provider.requests[0].ended.wait()   # played to its end, or the caller hung up: then .aborted is True

Requests take the plays in order, the last one again and again. A step is bytes (one write), an `asyncio.Event`
(waits until the test sets it), `CUT` (closes the socket) or `RESET` (closes it with a RST).
`provider.open` counts the connections that are open now. `Provider(…, tls=context)` speaks TLS.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal, Self, cast

CUT: Final = "cut"
RESET: Final = "reset"
Step = bytes | asyncio.Event | Literal["cut", "reset"]


@dataclass(frozen=True)
class Play:
    """One answer. `chunked`: as Transfer-Encoding; else the steps are raw bytes. `head`: send a status and headers."""

    steps: tuple[Step, ...]
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    chunked: bool = True
    head: bool = True

    def split(self, size: int) -> Play:
        """The same bytes in writes of `size`."""
        pieces: list[Step] = []
        for step in self.steps:
            pieces += _pieces(step, size) if isinstance(step, bytes) else [step]
        return Play(tuple(pieces), self.status, self.headers, self.chunked, self.head)


def play(*steps: Step) -> Play:
    """A 200 event stream."""
    return Play(steps, headers=(("Content-Type", "text/event-stream"),))


def answer(status: int, body: bytes, **headers: str) -> Play:
    """A whole body with its length; `Retry_After="2"` spells the header Retry-After."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    length = (("Content-Type", "application/json"), ("Content-Length", str(len(body))))
    return Play((body,), status, (*length, *named), chunked=False)


def silence(*gates: asyncio.Event) -> Play:
    """Accepts the request and says nothing, not even a status, until the gates open; then hangs up."""
    return Play((*gates, CUT), chunked=False, head=False)


@dataclass
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    aborted: bool = False

    def json(self) -> Any:
        return json.loads(self.body)


class Provider:
    def __init__(self, *plays: Play, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.plays = list(plays)
        self.requests: list[Received] = []
        self.arrived = asyncio.Condition()
        self.open = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections: set[_Connection] = set()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    async def request(self, index: int) -> Received:
        """The request of that number, waiting for it."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.requests) > index)
        return self.requests[index]

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024, ssl=self._tls)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        for connection in list(self.connections):
            connection.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def take(self, received: Received) -> Play:
        chosen = self.plays[min(len(self.requests), len(self.plays) - 1)]
        self.requests.append(received)
        return chosen

    def start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.buffer = b""
        self.current: Received | None = None
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self.provider.open += 1
        self.provider.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.provider.open -= 1
        self.provider.connections.discard(self)
        self.lost.set()
        if self.current is not None and not self.current.ended.is_set():
            self.current.aborted = True
            self.current.ended.set()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        method, path, _ = first.split(" ")
        self.current = Received(method, path, headers, rest[:length])
        self.provider.start(self._play(self.provider.take(self.current), self.current))

    async def _play(self, chosen: Play, received: Received) -> None:
        async with self.provider.arrived:
            self.provider.arrived.notify_all()
        if chosen.head:
            self.transport.write(_head(chosen))
        for step in chosen.steps:
            if not await self._step(chosen, received, step):
                return
            await asyncio.sleep(0)
        if chosen.chunked:
            self.transport.write(b"0\r\n\r\n")
        received.ended.set()

    async def _step(self, chosen: Play, received: Received, step: Step) -> bool:
        """Perform a step; False when the connection is over."""
        if isinstance(step, asyncio.Event):
            await _first_of(step, self.lost)
        elif isinstance(step, bytes):
            self.transport.write(b"%x\r\n%b\r\n" % (len(step), step) if chosen.chunked else step)
        else:
            received.ended.set()
            if step == RESET:
                _reset(self.transport)
            self.transport.close()
            return False
        return not self.lost.is_set()


def _head(chosen: Play) -> bytes:
    lines = [f"HTTP/1.1 {chosen.status} {_phrase(chosen.status)}"]
    lines += [f"{name}: {value}" for name, value in chosen.headers]
    if chosen.chunked:
        lines.append("Transfer-Encoding: chunked")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _reset(transport: asyncio.Transport) -> None:
    raw = transport.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]
