"""Sweeps go on, whatever becomes of one of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crocevia.app.housekeeping import keep_house
from crocevia.core.errors import Code, GatewayError
from tests.aio import run


class Log:
    def __init__(self) -> None:
        self.errors: list[dict[str, Any]] = []

    def error(self, event: str, **fields: Any) -> None:
        self.errors.append(fields)


@pytest.mark.parametrize(
    ("fault", "told"),
    [(GatewayError(Code.UNAVAILABLE), False), (OSError("private"), True), (ValueError("private"), True)],
)
def test_a_sweep_that_fails_stops_neither_the_others_nor_the_next_round(fault: Exception, told: bool) -> None:
    async def work() -> None:
        log, swept, rounds = Log(), asyncio.Event(), 0

        async def failing() -> None:
            raise fault

        async def good() -> None:
            nonlocal rounds
            rounds += 1
            if rounds == 3:
                swept.set()

        async with keep_house((failing, good), log, every=0.0):
            await swept.wait()
        assert bool(log.errors) is told
        assert "private" not in repr(log.errors)

    run(work())


def test_leaving_ends_the_sweep_that_runs() -> None:
    async def work() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def long() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with keep_house((long,), Log()):
            await begun.wait()
        assert ended.is_set()

    run(work())
