from __future__ import annotations

import asyncio
from typing import Any

from crocevia.app.store import watch_store
from tests.aio import run


class Desk:
    failing_since: float | None = None
    failing_because = ""


class Queue:
    late = 0


class Log:
    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.heard = asyncio.Event()

    def error(self, event: str, **more: Any) -> None:
        self.said.append(("error", more))
        self.heard.set()

    def warning(self, event: str, **more: Any) -> None:
        self.said.append(("warning", more))
        self.heard.set()

    def info(self, event: str, **more: Any) -> None:
        self.said.append(("info", more))
        self.heard.set()


def test_a_store_that_fails_is_told_once_and_so_is_its_recovery() -> None:
    async def work() -> None:
        store, log = Desk(), Log()
        async with watch_store(store, Queue(), log, every=0.005):
            await asyncio.sleep(0.02)
            assert log.said == []
            store.failing_because, store.failing_since = "SQLITE_FULL", 1.0
            await log.heard.wait()
            await asyncio.sleep(0.02)
            assert log.said == [("error", {"reason": "SQLITE_FULL"})]
            log.heard.clear()
            store.failing_since = None
            await log.heard.wait()
            assert [kind for kind, _ in log.said] == ["error", "info"]

    run(work())


def test_calls_that_did_not_wait_for_the_store_are_counted() -> None:
    async def work() -> None:
        queue, log = Queue(), Log()
        async with watch_store(Desk(), queue, log, every=0.005):
            for calls in (2, 1):
                queue.late += calls
                await log.heard.wait()
                log.heard.clear()
            assert log.said == [("warning", {"calls": 2}), ("warning", {"calls": 1})]

    run(work())
