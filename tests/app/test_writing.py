"""Frames that are written together go out together; a peer that stops reading is let go, a slow one is not."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any, cast

import uvicorn

from crocevia.app.writing import Gathered
from tests.aio import run

from .serving import FastStall

UPGRADE = (
    "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    f"sec-websocket-key: {base64.b64encode(bytes(16)).decode()}\r\n\r\n"
).encode()


class Wire:
    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0


def test_frames_of_a_socket_are_gathered() -> None:
    async def scene() -> None:
        wire = Wire()
        transport: Any = Gathered(cast("asyncio.Transport", wire), asyncio.get_running_loop(), 1.0)
        transport.write(b"a")
        transport.write(b"b")
        await asyncio.sleep(0)
        transport.write(b"c")
        transport.close()
        await asyncio.sleep(0)
        assert wire.writes == [b"ab", b"c"] and wire.closed

    run(scene())


def test_many_frames_do_not_wait_for_the_turn_to_end() -> None:
    async def scene() -> None:
        wire = Wire()
        transport: Any = Gathered(cast("asyncio.Transport", wire), asyncio.get_running_loop(), 1.0)
        for _ in range(100):
            transport.write(b"x" * 1000)
        assert sum(map(len, wire.writes)) >= 64 * 1024
        await asyncio.sleep(0)
        assert b"".join(wire.writes) == b"x" * 100_000

    run(scene())


class Talker:
    """A WebSocket application that sends for as long as it is told to, and notices when the peer has gone."""

    def __init__(self, frames: int) -> None:
        self.frames = frames
        self.sent = 0
        self.over = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        leaving = asyncio.ensure_future(receive())
        with suppress(OSError):
            while self.sent < self.frames and not leaving.done():
                await send({"type": "websocket.send", "bytes": bytes(100_000)})
                self.sent += 1
        leaving.cancel()
        self.over.set()
        if self.sent == self.frames:
            await send({"type": "websocket.close", "code": 1000})


class Listener:
    """An HTTP application that never ends its answer, and notices when the peer has gone."""

    def __init__(self) -> None:
        self.scopes: list[str] = []
        self.over = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope["type"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            pass
        self.over.set()


@asynccontextmanager
async def talking(
    app: Talker | Listener, first: bytes = UPGRADE
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    config = uvicorn.Config(app, port=0, http=FastStall, ws="websockets-sansio", lifespan="off", log_config=None)
    config.ws_per_message_deflate = False
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    reader, writer = await asyncio.open_connection(*server.servers[0].sockets[0].getsockname()[:2])
    try:
        writer.write(first)
        await reader.readuntil(b"\r\n\r\n")
        yield reader, writer
        assert not server.server_state.tasks
    finally:
        writer.transport.abort()
        server.should_exit = True
        await task


def test_a_socket_whose_peer_stops_reading_is_let_go() -> None:
    async def scene() -> None:
        app = Talker(1_000_000)
        async with talking(app) as (_, writer):
            cast("asyncio.Transport", writer.transport).pause_reading()
            await asyncio.wait_for(app.over.wait(), 10)
            assert app.sent < 500  # what the kernel takes, and no more
            await asyncio.sleep(0)

    run(scene(), timeout=30)


def test_a_socket_whose_peer_reads_slowly_is_served() -> None:
    async def scene() -> None:
        frames, size = 60, 0
        app = Talker(frames)
        async with talking(app) as (reader, writer):
            while data := await reader.read(100_000):
                size += len(data)
                if data.endswith(b"\x88\x02\x03\xe8"):
                    break
                await asyncio.sleep(len(data) / 4_000_000)
            assert size > frames * 100_000
            writer.transport.abort()
            await app.over.wait()
            await asyncio.sleep(0.05)

    run(scene(), timeout=30)


def test_no_socket_begins_while_an_answer_is_under_way() -> None:
    """It would take the connection over, and nobody would tell the answer of a hang-up."""

    async def scene() -> None:
        app = Listener()
        async with talking(app, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n") as (reader, writer):
            writer.write(UPGRADE)
            await asyncio.wait_for(reader.read(), 5)
            await asyncio.wait_for(app.over.wait(), 5)
            await asyncio.sleep(0)
            assert app.scopes == ["http"]

    run(scene(), timeout=20)
