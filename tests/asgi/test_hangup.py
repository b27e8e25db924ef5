"""A client that hangs up is seen at once, and whoever listens for it leaves nothing behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crocevia.asgi.body import ClientGone
from crocevia.asgi.hangup import on_disconnect, race, run_until_disconnect, wait_disconnect
from tests.aio import run


class Client:
    """Sends a late piece of its body, then nothing until it hangs up."""

    def __init__(self) -> None:
        self.hang_up = asyncio.Event()
        self.late = True

    async def receive(self) -> dict[str, Any]:
        if self.late:
            self.late = False
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.hang_up.wait()
        return {"type": "http.disconnect"}


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_a_block_is_told_of_a_hangup_and_goes_on() -> None:
    async def work() -> None:
        client, told = Client(), asyncio.Event()
        with on_disconnect(client.receive, told.set) as leaving:
            await settle()
            assert not told.is_set() and not leaving.done()
            client.hang_up.set()
            await told.wait()
            await leaving

    run(work())


def test_a_block_that_ends_first_is_told_nothing_and_stops_listening() -> None:
    async def work() -> None:
        client, told = Client(), asyncio.Event()
        with on_disconnect(client.receive, told.set) as leaving:
            await settle()
        await settle()
        assert leaving.cancelled()
        client.hang_up.set()
        await settle()
        assert not told.is_set()

    run(work())


def test_work_is_given_up_when_its_caller_leaves() -> None:
    async def work() -> None:
        client, ended = Client(), asyncio.Event()

        async def endless() -> str:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return "never"

        asked = asyncio.ensure_future(run_until_disconnect(client.receive, endless()))
        await settle()
        client.hang_up.set()
        with pytest.raises(ClientGone):
            await asked
        await ended.wait()

    run(work())


@pytest.mark.parametrize("slow", [False, True])
def test_work_whose_caller_stays_gives_its_result_or_its_error(slow: bool) -> None:
    async def work() -> None:
        async def result(value: int) -> int:
            if slow:
                await settle()
            if value < 0:
                raise ValueError("below zero")
            return value

        assert await run_until_disconnect(Client().receive, result(5)) == 5
        with pytest.raises(ValueError, match="below zero"):
            await run_until_disconnect(Client().receive, result(-1))

    run(work())


def test_a_caller_who_is_cancelled_takes_the_work_along() -> None:
    async def work() -> None:
        ended = asyncio.Event()

        async def endless() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        asked = asyncio.ensure_future(run_until_disconnect(Client().receive, endless()))
        await settle()
        asked.cancel()
        await ended.wait()

    run(work())


def test_the_first_to_end_ends_all_and_they_have_ended() -> None:
    async def work() -> None:
        client, order = Client(), []

        async def other(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                order.append(name)

        client.hang_up.set()
        await race(wait_disconnect(client.receive), other("a"), other("b"))
        assert order == ["a", "b"]

    run(work())
