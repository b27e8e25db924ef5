from __future__ import annotations

import asyncio

from crocevia.log import LocalDispatcher
from tests.aio import run


def test_a_chat_is_driven_once_at_a_time_and_once_more_if_it_was_woken_meanwhile() -> None:
    async def scenario() -> None:
        runs: list[str] = []
        gate = asyncio.Event()
        done = asyncio.Event()

        async def drive(chat: str) -> None:
            runs.append(chat)
            if len(runs) == 1:
                await gate.wait()
            else:
                done.set()

        dispatcher = LocalDispatcher(drive)
        await dispatcher.wake("c")
        await asyncio.sleep(0)
        for _ in range(5):
            await dispatcher.wake("c")
        assert runs == ["c"]
        gate.set()
        await done.wait()
        await asyncio.sleep(0)
        assert runs == ["c", "c"]

    run(scenario())


def test_different_chats_are_driven_side_by_side_and_a_failed_run_is_told_and_tried_at_the_next_wake() -> None:
    async def scenario() -> None:
        failed: list[str] = []
        together = asyncio.Barrier(2)

        async def drive(chat: str) -> None:
            await together.wait()
            raise RuntimeError

        dispatcher = LocalDispatcher(drive, lambda chat, error: failed.append(chat))
        for _ in range(2):
            before = len(failed)
            await dispatcher.wake("a")
            await dispatcher.wake("b")
            while len(failed) < before + 2:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert sorted(failed) == ["a", "a", "b", "b"]

    run(scenario())


def test_closing_stops_what_runs() -> None:
    async def scenario() -> None:
        async def drive(chat: str) -> None:
            await asyncio.Event().wait()

        dispatcher = LocalDispatcher(drive)
        await dispatcher.wake("c")
        await asyncio.sleep(0)
        await dispatcher.close()
        assert not dispatcher._running

    run(scenario())
