"""The load generator: keep-alive HTTP/1.1 POSTs from one hand-written protocol per connection, whole or streamed."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from .upstream import TOKEN, content_length

_MARK = TOKEN.strip().encode()
_END = b"0\r\n\r\n"
_REPEATS = re.compile(rb"event: (?:done|response\.output_text\.done)")  # from here on the whole text may come again
_OVERLAP = 48  # bytes: longer than anything that is looked for


@dataclass(frozen=True)
class Request:
    """What every connection sends, again and again."""

    port: int
    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()

    def spelled(self) -> bytes:
        lines = [f"POST {self.path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines += [f"Content-Length: {len(self.body)}", "", ""]
        return "\r\n".join(lines).encode() + self.body


@dataclass
class Tally:
    """What was seen since the last reset. Times in seconds: from the request to its end, and to its first token."""

    done: int = 0
    failed: int = 0
    tokens: int = 0
    latencies: list[float] = field(default_factory=list)
    first_tokens: list[float] = field(default_factory=list)
    failure: str = ""


class Client(asyncio.Protocol):
    """One connection that sends its request again as soon as the answer is complete."""

    def __init__(self, request: bytes, tally: Callable[[], Tally], port: int) -> None:
        self._request, self._tally, self._port = request, tally, port
        self._transport: asyncio.Transport | None = None
        self.stopping = False
        self._reset()

    def _reset(self) -> None:
        self._head: bytes | None = None
        self._received = b""
        self._length = -1  # chunked
        self._counting = True
        self._announced = False  # the server said that it would close the connection
        self._first = True
        self._began = time.perf_counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class is not a subclass
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        self._reset()
        self._transport.write(self._request)

    def connection_lost(self, error: Exception | None) -> None:
        if self.stopping:
            return
        if not self._announced:
            self._fail("connection closed by the server")
        loop = asyncio.get_running_loop()
        self._again = loop.create_task(loop.create_connection(lambda: self, "127.0.0.1", self._port))

    def data_received(self, data: bytes) -> None:
        if self._head is None:
            head, found, data = (self._received + data).partition(b"\r\n\r\n")
            if not found:
                self._received = head
                return
            self._begin(head)
        if self._length >= 0:
            self._received += data
            if len(self._received) >= self._length:
                self._finish()
        else:
            self._stream(data)

    def _begin(self, head: bytes) -> None:
        self._head, self._received = head, b""
        self._length = content_length(head) if b"\r\ncontent-length:" in head.lower() else -1

    def _stream(self, data: bytes) -> None:
        seen = self._received + data
        if self._counting:
            self._count(seen)
        # Enough is kept to recognise a mark or the end that comes in two reads, and never a whole mark twice.
        self._received = seen[-_OVERLAP:].replace(_MARK, b"...")
        if seen.endswith(_END):
            self._finish()

    def _count(self, seen: bytes) -> None:
        repeats = _REPEATS.search(seen)
        found = seen.count(_MARK, 0, repeats.start() if repeats else len(seen))
        self._counting = repeats is None
        tally = self._tally()
        tally.tokens += found
        if found and self._first:
            self._first = False
            tally.first_tokens.append(time.perf_counter() - self._began)

    def _finish(self) -> None:
        assert self._head is not None
        if not self._head.startswith(b"HTTP/1.1 200"):
            body = self._received[:200].decode(errors="replace")
            self._fail(self._head.split(b"\r\n", 1)[0].decode(errors="replace") + " " + body)
        else:
            tally = self._tally()
            tally.done += 1
            tally.latencies.append(time.perf_counter() - self._began)
        self._announced = b"\r\nconnection: close" in self._head.lower()
        if not (self._announced or self.stopping):
            self._send()

    def _fail(self, why: str) -> None:
        tally = self._tally()
        tally.failed += 1
        tally.failure = why

    def stop(self) -> None:
        self.stopping = True
        if self._transport is not None:
            self._transport.abort()


@dataclass(frozen=True)
class Measured:
    """A window of steady load. `cpu` is what `clock` counted in it: seconds of CPU of the server's process tree."""

    concurrency: int
    seconds: float
    cpu: float
    tally: Tally


async def load(
    request: Request, concurrency: int, *, seconds: float, warm_up: float, clock: Callable[[], float]
) -> Measured:
    """Hold `concurrency` connections busy; measure `seconds` after `warm_up` seconds."""
    tally = Tally()
    spelled = request.spelled()
    loop = asyncio.get_running_loop()
    clients: list[Client] = []
    try:
        for _ in range(concurrency):
            client = Client(spelled, lambda: tally, request.port)
            clients.append(client)
            await loop.create_connection(lambda client=client: client, "127.0.0.1", request.port)  # type: ignore[misc]
        await asyncio.sleep(warm_up)
        tally = Tally()
        began, cpu = time.perf_counter(), clock()
        await asyncio.sleep(seconds)
        measured = tally
        spent, took = clock() - cpu, time.perf_counter() - began
    finally:
        tally = Tally()
        for client in clients:
            client.stop()
    await asyncio.sleep(0.2)  # let the server notice that they are gone
    return Measured(concurrency, took, spent, measured)
