"""The SDKs of other languages on a real server, through their drivers: cuts, kills, a tool's program that dies.

`make test-sdks` builds the drivers (conformance/DRIVER.md) and names them in SDK_DRIVERS, as "go=COMMAND;…".
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from conformance.runner.program import Program

from envai_client import AsyncEnvaiClient, ReconnectPolicy
from tests.aio import run

from .own_sdk import NUMBERS, SLOW, Place, Proxy
from .turns_rig import Rig

DRIVERS = dict(entry.split("=", 1) for entry in os.environ.get("SDK_DRIVERS", "").split(";") if entry)
pytestmark = pytest.mark.skipif(not DRIVERS, reason="make test-sdks runs these, with the drivers that it builds")
drivers = pytest.mark.parametrize("name", DRIVERS or ["none"])
PATIENT = {"reconnect": {"base_delay": 0.05, "max_delay": 0.3, "max_reconnects": 100}}
ADD = {"add": {"schema": NUMBERS, "timeout": 60, "does": {"meanwhile": 0.1, "returns": {"sum": 5}}}}


class Life:
    """One life of a driver's program."""

    def __init__(self, name: str, place: Place, ledger: Path, url: str | None = None) -> None:
        self.program = Program(shlex.split(DRIVERS[name]))
        self.given = {"base_url": url or place.url, "api_key": place.key, "ledger": str(ledger), "options": PATIENT}
        self.notices: list[str] = []
        self.heard = asyncio.Event()

    async def __aenter__(self) -> Life:
        await self.program.__aenter__()
        assert "error" not in await self.program.ask({"do": "open", **self.given}, self.notice)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.program.__aexit__()

    def notice(self, told: dict[str, Any]) -> None:
        self.notices.append(told["notice"])
        self.heard.set()

    def play(self, **step: Any) -> asyncio.Task[dict[str, Any]]:
        command = {"do": "play", "step": step, "target": os.devnull}
        return asyncio.create_task(self.program.ask(command, self.notice))

    def kill(self) -> None:
        self.program._process.send_signal(signal.SIGKILL)

    async def told(self, notice: str) -> None:
        while notice not in self.notices:
            self.heard.clear()
            await self.heard.wait()


def ours(place: Place) -> AsyncEnvaiClient:
    policy = ReconnectPolicy(base_delay=0.05, max_delay=0.3, max_reconnects=100)
    return AsyncEnvaiClient(api_key=place.key, base_url=place.url, reconnect=policy)


async def followed(client: AsyncEnvaiClient, chat: str, until: str) -> list[Any]:
    """The chat's events up to the first of the type `until`."""
    async with client.chats.events(chat, timeout=30) as stream:
        events: list[Any] = []
        async for event in stream:
            events.append(event)
            if event.type == until:
                return events
    raise AssertionError("the stream ended")


@drivers
def test_a_stream_that_is_cut_again_and_again_misses_nothing(name: str, place: Place, tmp_path: Path) -> None:
    chat = place.chat()

    async def work() -> None:
        async with ours(place) as client, Life(name, place, tmp_path / "ledger", proxy.url) as life:
            model = place.chat()
            await client.chats.send_and_wait(model, "slow", timeout=20)
            wanted = len(await followed(client, model, "turn.completed"))
            reading = life.play(call="chats.events", args=[chat], take=wanted)
            answer = asyncio.create_task(client.chats.send_and_wait(chat, "slow", timeout=20))
            while not reading.done():
                await asyncio.sleep(0.1)  # how often it is cut
                proxy.cut()
            assert (await answer).text == SLOW
            reply = await reading
            assert "error" not in reply, reply
            raws = [event.raw for event in await followed(client, chat, "turn.completed")]
            assert [event["raw"] for event in reply["result"]["events"]] == raws and proxy.accepted >= 4

    with Proxy(place.url) as proxy:
        run(work(), timeout=60)


@drivers
def test_a_turn_is_followed_through_a_server_that_is_killed(
    name: str, place: Place, own_rig: Rig, tmp_path: Path
) -> None:
    chat = place.chat()

    async def work() -> None:
        async with ours(place) as client, Life(name, place, tmp_path / "ledger") as life:
            turn = life.play(call="chats.send_and_wait", args=[chat, "slow"])
            await followed(client, chat, "agent.text.delta")
            await asyncio.to_thread(own_rig.kill)
            await asyncio.to_thread(own_rig.start)
            reply = await turn
            assert "error" not in reply, reply
            assert reply["result"]["value"]["text"] == SLOW and reply["result"]["value"]["completed"]
            added = await life.play(call="chats.send_and_wait", args=[chat, "please add"], tools=ADD)
            assert added["result"]["value"]["text"] == 'It is {"sum":5}.' and life.notices == ["entered", "left"]

    run(work(), timeout=60)


@drivers
def test_an_output_that_a_killed_program_left_is_delivered_and_nothing_runs_twice(
    name: str, place: Place, own_rig: Rig, tmp_path: Path
) -> None:
    chat = place.chat()

    async def work() -> None:
        async with ours(place) as client:
            async with Life(name, place, tmp_path / "ledger") as first:
                turn = first.play(call="chats.send_and_wait", args=[chat, "please add"], tools=ADD)
                await first.told("entered")
                own_rig.signal(signal.SIGSTOP)
                try:
                    await first.told("left")
                    await asyncio.sleep(0.5)  # its outcome is kept; the server that should have it answers nothing
                    first.kill()
                finally:
                    own_rig.signal(signal.SIGCONT)
                with pytest.raises(Exception, match="driver"):
                    await turn
            async with Life(name, place, tmp_path / "ledger") as second:
                reading = second.play(call="chats.events", args=[chat], take=10_000, tools=ADD)
                events = await followed(client, chat, "turn.completed")
                assert [e.data.text for e in events if e.type == "agent.text.done"] == ['It is {"sum":5}.']
                assert second.notices == []
                second.kill()
                with pytest.raises(Exception, match="driver"):
                    await reading

    run(work(), timeout=60)


@drivers
def test_a_call_whose_program_died_in_the_middle_is_left_to_the_application(
    name: str, place: Place, tmp_path: Path
) -> None:
    chat = place.chat()
    slow = {"add": ADD["add"] | {"does": {"meanwhile": 20, "returns": {"sum": 5}}}}

    async def work() -> None:
        async with ours(place) as client:
            async with Life(name, place, tmp_path / "ledger") as first:
                turn = first.play(call="chats.send_and_wait", args=[chat, "please add"], tools=slow)
                await first.told("entered")
                first.kill()
                with pytest.raises(Exception, match="driver"):
                    await turn
            async with Life(name, place, tmp_path / "ledger") as second:
                there = len(await followed(client, chat, "agent.tool.request"))
                reading = second.play(call="chats.events", args=[chat], take=there + 1, tools=ADD)
                await asyncio.sleep(2)  # more than it waits for a replay to pass
                assert second.notices == []
                await client.chats.cancel(chat)
                await reading
                given = {"chat_id": chat, "call_id": (await requested(client, chat)).data.call_id}
                reply = await second.program.ask({"do": "ledger", **given}, second.notice)
                # What came next may be the server's own word for the call; an outcome of ours there is none.
                assert reply["result"]["state"] in ("started", "resolved") and second.notices == []

    run(work(), timeout=60)


async def requested(client: AsyncEnvaiClient, chat: str) -> Any:
    return (await followed(client, chat, "agent.tool.request"))[-1]
