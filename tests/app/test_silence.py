"""Peers that open a connection and send nothing, or stop in the middle: they are let go, and starve nobody."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from crocevia.app.protocol import Protocol
from tests.aio import run
from tests.doors.pepper.house import HELLO

from .serving import read_answer, request, serving


class Hasty(Protocol):
    """Waits half a second for anything, and keeps an idle connection for two."""

    head_seconds = 0.5
    silence_seconds = 0.5


HEAD = request("/agent", b"", **{"content-length": "100"})
SILENT = {
    "nothing": b"",
    "blank lines": b"\r\n\r\n",
    "half a request line": b"POST /ag",
    "half a head": HEAD[:40],
    "no body": HEAD,
    "half a body": HEAD + b'{"messages": [',
    "half a chunk": request("/agent", b"", **{"content-length": "", "transfer-encoding": "chunked"}) + b"ff\r\nxx",
    "a body that waits to be asked for": request("/agent", b"", **{"content-length": "9", "expect": "100-continue"}),
    "no body for somebody else": request("/v1/responses", b"", **{"content-length": "5"}),
    "no body for an address that is not there": request("/none", b"", **{"content-length": "5"}),
}


@pytest.mark.parametrize("case", SILENT)
def test_a_peer_that_falls_silent_is_let_go(case: str) -> None:
    async def work() -> None:
        async with serving(protocol=Hasty) as place, place.open() as (reader, writer):
            writer.write(SILENT[case])
            await asyncio.wait_for(reader.read(), 10)  # to the end of the connection, whatever is said before
            while place.server.server_state.connections or place.server.server_state.tasks:
                await asyncio.sleep(0.01)
            assert place.service.gateway.active == 0

    run(work(), timeout=30)


def test_dribbling_does_not_buy_more_time_for_a_head() -> None:
    async def work() -> None:
        async with serving(protocol=Hasty) as place, place.open() as (reader, writer):
            loop = asyncio.get_running_loop()
            began, ending = loop.time(), asyncio.ensure_future(reader.read())
            for byte in HEAD:
                if ending.done() or loop.time() - began > 10:
                    break
                writer.write(bytes([byte]))
                await asyncio.wait([ending], timeout=0.1)
            assert await asyncio.wait_for(ending, 5) == b""

    run(work(), timeout=30)


def test_a_body_that_comes_slowly_and_a_second_request_are_served() -> None:
    """Every piece buys time, and a connection that was idle for longer than a head may take is still good."""

    async def work() -> None:
        async with serving(protocol=Hasty) as place, place.open() as (reader, writer):
            whole = request("/agent", b'{"messages": [{"role": "user", "content": "ciao"}]}')
            head, gap, body = whole.partition(b"\r\n\r\n")
            for _ in range(2):
                writer.write(head + gap)
                for at in range(0, len(body), 12):
                    await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0.2))])
                    writer.write(body[at : at + 12])
                status, _, _ = await asyncio.wait_for(read_answer(reader), 10)
                assert status == 200
                assert not await still(reader, 1.0), "closed while idle"

    run(work(), timeout=30)


async def still(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Whether the connection ended within that time."""
    try:
        async with asyncio.timeout(seconds):
            return await reader.read(1) == b""
    except TimeoutError:
        return False


def test_200_silent_sockets_starve_nobody() -> None:
    async def work() -> None:
        async with serving(protocol=Hasty) as place, AsyncExitStack() as stack:
            silent = [await stack.enter_async_context(place.open()) for _ in range(200)]
            for index, (_, writer) in enumerate(silent):
                writer.write(list(SILENT.values())[index % 6])
            status, _, _ = await asyncio.wait_for(place.post("/agent", HELLO), 10)
            assert status == 200
            await asyncio.wait_for(asyncio.gather(*(reader.read() for reader, _ in silent)), 20)
            assert (await place.post("/agent", HELLO))[0] == 200
            while place.server.server_state.connections:
                await asyncio.sleep(0.01)

    run(work(), timeout=50)
