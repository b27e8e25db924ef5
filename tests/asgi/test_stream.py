from __future__ import annotations

import asyncio
from typing import Any

from crocevia.asgi.stream import PING, EventStream
from tests.aio import run


def test_a_writer_cut_while_a_ping_is_stuck_can_still_say_the_last_word() -> None:
    async def work() -> None:
        sent: list[bytes] = []
        stuck, reading = asyncio.Event(), asyncio.Event()

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))
            if message.get("body") == PING:
                stuck.set()
                await reading.wait()

        async with EventStream(send, 0.01) as stream:
            await stuck.wait()
            writing = asyncio.create_task(stream.write(b"never"))
            await asyncio.sleep(0)
            writing.cancel()
            await asyncio.wait([writing])
            reading.set()
            await stream.end(b"last")
        assert b"never" not in sent
        assert sent[-1] == b"last"

    run(work())
