"""Crowds that leave or make no sense: the provider is left alone, and the next good call finds everything free."""

from __future__ import annotations

import asyncio
import json
import random

from tests.aio import run
from tests.app.serving import Place, request
from tests.doors.pepper.house import HELLO
from tests.e2e.test_bad_input import BAD, no_tasks, quiet, status_of
from tests.e2e.test_streams import END, chunk, remote
from tests.fakes.provider import play

STREAM = json.dumps(HELLO | {"stream": True}).encode()


async def leave(place: Place, at: int) -> None:
    """Start a stream and hang up: before the answer, after its head, or in the middle of it."""
    async with place.open() as (reader, writer):
        writer.write(request("/agent", STREAM))
        if at == 0:
            await writer.drain()
        else:
            await reader.readuntil(b"\r\n\r\n" if at == 1 else b"delta")


def test_after_300_abandoned_streams_every_slot_is_free_and_no_provider_works_on() -> None:
    async def work() -> None:
        never = asyncio.Event()
        async with remote(chunk("uno"), never, max_concurrency=300) as (provider, place):
            for start in range(0, 300, 50):
                await asyncio.gather(*[leave(place, number % 3) for number in range(start, start + 50)])
            await no_tasks(place)
            quiet(place)
            while provider.open:
                await asyncio.sleep(0.01)
            assert all(asked.aborted for asked in provider.requests)
            provider.plays[:] = [play(chunk("due"), END)]
            status, _, body = await place.post("/agent", HELLO | {"stream": True})
            assert status == 200
            assert b"due" in body and b"event: done" in body

    run(work(), timeout=50)


def test_bad_requests_never_reach_the_provider_and_use_nothing_up() -> None:
    async def work() -> None:
        async with remote(chunk("uno"), END, max_concurrency=1, hourly_limit=1) as (provider, place):
            for status, make in random.Random(5).choices(list(BAD.values()), k=100):
                assert (await status_of(place, make()))[0] == status
            await no_tasks(place)
            assert (provider.requests, provider.open) == ([], 0)
            assert (await place.post("/agent", HELLO | {"stream": True}))[0] == 200
            assert (await place.post("/agent", HELLO))[0] == 429

    run(work(), timeout=50)
