"""A refusal frees what it held at once: nothing waits for the collector, which looks rarely."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from crocevia.app.exchange import Exchange
from tests.aio import run
from tests.app.serving import Place, read_answer, request, serving

LARGE = 300_000  # bytes: decoded aside
BODIES = {
    "cut short": b"{",
    "cut short, large": b"{" + b" " * LARGE,
    "no UTF-8": b"\xff" * LARGE,
    "of another shape": b'{"messages":[1]}' + b" " * LARGE,
    "without messages": b'{"messages":[]}' + b" " * LARGE,
    "deep": b'{"messages":' + b"[" * LARGE,
    "another project's": b'{"messages":[],"project":"altrove","progetto":"altrove","contenuto":"x"}' + b" " * LARGE,
}
PLACES = ("/agent", "/agent/verifica", "/api.php", "/api/v1/teams", "/none")
KEYS = ("chiave", "sbagliata", "")


@contextmanager
def uncollected() -> Iterator[list[Any]]:
    """What only the collector would have freed of what happens inside the block."""
    found: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def refused(place: Place, path: str, body: bytes, key: str) -> int:
    async with place.open() as (reader, writer):
        writer.write(request(path, body, **{"x-pepper-key": key, "x-pepper-project": ""}))
        return (await asyncio.wait_for(read_answer(reader), 10))[0]


def test_no_refusal_leaves_a_cycle_that_holds_its_request() -> None:
    async def work() -> None:
        async with serving() as place:
            for path in PLACES:
                for body in BODIES.values():
                    await refused(place, path, body, KEYS[0])  # what is made once
            for path in PLACES:
                with uncollected() as found:
                    statuses = [await refused(place, path, body, key) for body in BODIES.values() for key in KEYS]
                    while place.server.server_state.connections:
                        await asyncio.sleep(0.005)
                kinds = BaseException | FrameType | TracebackType | Exchange
                held = [each for each in found if isinstance(each, kinds)]
                assert (path, statuses, held) == (path, statuses, [])

    gc.collect()
    gc.freeze()  # what is there already is looked through in every round otherwise
    try:
        run(work(), timeout=50)
    finally:
        gc.unfreeze()
