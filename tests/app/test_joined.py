"""What is written in one turn of the loop goes out together and in its order."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from crocevia.app.protocol import Joined
from tests.aio import run


class Wire:
    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.closed = True


def joined() -> tuple[Any, Wire]:
    wire = Wire()
    return Joined(cast("asyncio.Transport", wire), asyncio.get_running_loop()), wire


def test_a_head_goes_with_what_follows_or_alone() -> None:
    async def scene() -> None:
        transport, wire = joined()
        transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
        transport.write(b"body")
        transport.write(b"more")
        transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.sleep(0)
        assert wire.writes == [b"HTTP/1.1 200 OK\r\n\r\nbody", b"more", b"HTTP/1.1 200 OK\r\n\r\n"]

    run(scene())


def test_frames_of_a_socket_are_gathered_behind_its_handshake() -> None:
    async def scene() -> None:
        transport, wire = joined()
        transport.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        transport.write(b"a")
        transport.write(b"b")
        await asyncio.sleep(0)
        transport.write(b"c")
        transport.write(b"HTTP/1.1 is what this frame says")
        transport.close()
        await asyncio.sleep(0)
        assert wire.writes == [
            b"HTTP/1.1 101 Switching Protocols\r\n\r\nab",
            b"cHTTP/1.1 is what this frame says",
        ]
        assert wire.closed

    run(scene())
