"""Sweeps go on, whatever becomes of one of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import structlog

from crocevia.app.periodic_cleanup import periodic_cleanup
from crocevia.app.service import open_service
from crocevia.config import Settings
from crocevia.core.catalogue import EngineSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.storage.home import Home
from tests.aio import run
from tests.app.serving import BRAIN, declare


class Log:
    def __init__(self) -> None:
        self.errors: list[dict[str, Any]] = []

    def error(self, event: str, **fields: Any) -> None:
        self.errors.append(fields)


@pytest.mark.parametrize(
    ("fault", "told"),
    [(GatewayError(Reason.UNAVAILABLE), False), (OSError("private"), True), (ValueError("private"), True)],
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

        async with periodic_cleanup((failing, good), log, every=0.0):
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

        async with periodic_cleanup((long,), Log()):
            await begun.wait()
        assert ended.is_set()

    run(work())


def test_what_an_earlier_process_left_half_written_is_gone_before_the_next_serves(tmp_path: Path) -> None:
    home = Home(tmp_path)
    declare(home, (EngineSpec(name="scripted", kind="scripted"),), (BRAIN,))
    left = home.files / "incoming" / "left"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")

    async def work() -> None:
        async with open_service(Settings(), home, structlog.get_logger()):
            assert not left.exists()

    run(work(), timeout=30)
