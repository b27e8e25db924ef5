"""Loopback servers and a name server for the tests of the fetch guard.

127.0.0.2 plays the open internet and 127.0.0.1 the inner network: only the former is open to `outside`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

OUTER = "127.0.0.2"
INNER = "127.0.0.1"

Handler = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


def outside(address: str) -> bool:
    return address == OUTER


class Names:
    """A name server in memory: each look-up of a name takes its next answer, the last one for ever."""

    def __init__(self, table: dict[str, list[list[str]]]) -> None:
        self.table = table
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        answers = self.table.get(host)
        if answers is None:
            raise OSError("no such name")
        self.asked.append(host)
        return answers[min(self.asked.count(host), len(answers)) - 1]


class Server:
    """A raw HTTP/1.1 server that counts its connections and lets the test write every byte."""

    def __init__(self, handle: Handler) -> None:
        self.handle = handle
        self.hits = 0
        self.requests: list[str] = []
        self.port = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hits += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.requests.append(head)
            await self.handle(head.split(" ")[1], writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(handle: Handler, host: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(handle)
    listener = await asyncio.start_server(server._serve, host, 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()


def reply(body: bytes = b"", status: str = "200 OK", headers: str = "", length: int | None = None) -> bytes:
    """One HTTP answer; `length` lies about the body, -1 leaves the header out."""
    told = "" if length == -1 else f"Content-Length: {len(body) if length is None else length}\r\n"
    return f"HTTP/1.1 {status}\r\n{told}{headers}Connection: close\r\n\r\n".encode() + body


async def secret(_: str, writer: asyncio.StreamWriter) -> None:
    """What the inner server says to whoever gets in."""
    writer.write(reply(b"inner secret"))
    await writer.drain()
