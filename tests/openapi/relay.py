"""A relay in front of a server: it gives every endless event stream a proper end once it has been silent for a while.

A program that reads answers to their end can then be let loose on addresses whose answers have none.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

SILENCE = 0.3
LAST = b"0\r\n\r\n"


@contextmanager
def relay(url: str) -> Iterator[str]:
    """The relay's own address, for as long as the block runs."""
    port = urlsplit(url).port
    ready: list[int] = []
    begun = threading.Event()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        server = await asyncio.start_server(lambda *pair: _carry(*pair, port), "127.0.0.1", 0)
        ready.append(server.sockets[0].getsockname()[1])
        begun.set()
        await over.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert begun.wait(10)
    try:
        yield f"http://127.0.0.1:{ready[0]}"
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int | None) -> None:
    above, below = await asyncio.open_connection("127.0.0.1", port)
    asking = asyncio.ensure_future(_asking(reader, below))
    try:
        with suppress(OSError):
            await _answering(above, writer)
    finally:
        asking.cancel()
        writer.close()
        below.close()


async def _asking(reader: asyncio.StreamReader, below: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            below.write(data)
            await below.drain()
    below.close()


async def _answering(above: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    streaming = False
    while True:
        try:
            async with asyncio.timeout(SILENCE if streaming else None):
                data = await above.read(65536)
        except TimeoutError:
            writer.write(LAST)
            await writer.drain()
            return
        if not data:
            return
        head = data.partition(b"\r\n\r\n")[0] if data.startswith(b"HTTP/1.1 ") else b""
        streaming = (streaming or b"text/event-stream" in head) and not data.endswith(LAST)
        writer.write(data)
        await writer.drain()
