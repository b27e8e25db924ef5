"""Random trouble at every point of a tool's life, on a virtual clock.

Whatever happens to the server, the network and the runners: no tool runs twice, and every output arrives or is told of
as a value that the program can read.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fixture_parts import SCHEMA, TOOL
from virtual import CHAT, STATES, World, run

import envai_client as sdk
from envai_client.options import ReconnectPolicy

SCHEDULES = int(os.environ.get("SDK_SCHEDULES", "20"))
PATIENT = ReconnectPolicy(max_reconnects=10_000, max_delay=2.0)
LONG = 600.0  # seconds within which all trouble is over


class Runner:
    """A program that follows the chat and answers its tool calls, killed and started again as the schedule says."""

    def __init__(self, world: World, name: str, ledger: Path, ran: Counter[str]) -> None:
        self.world = world
        self.name = name
        self.path = ledger
        self.ran = ran
        self.finished: set[str] = set()
        self.outcomes: list[sdk.ToolOutcome] = []
        self.unsettled: list[sdk.Record] = []
        self.problems: list[BaseException] = []

    async def live(self, lives: list[float]) -> None:
        """One life after the other, each killed after so many seconds; the last is left alone."""
        for seconds in lives:
            task = asyncio.create_task(self._life())
            await asyncio.wait([task], timeout=seconds)
            if task.done():
                task.result()
                return
            task.cancel()  # as a kill: nothing of this life's memory is left, only its ledger
            await asyncio.wait([task])
        await self._life()

    async def _life(self) -> None:
        ledger = sdk.SqliteLedger(self.path)
        client = sdk.AsyncEnvaiClient(
            api_key="k",
            base_url="http://server",
            transport=self.world,
            ledger=ledger,
            contract_version=3,
            reconnect=PATIENT,
        )
        registry = sdk.ClientToolRegistry()
        registry.register_tool(TOOL, self.handle, SCHEMA, timeout=self.world.tool_seconds)
        calls = client.chats.run_client_tools(client.chats.events(CHAT), registry)
        try:
            async for event in calls:
                if event.is_terminal:
                    break
        except sdk.EnvaiError as problem:
            self.problems.append(problem)
        finally:
            await calls.aclose()
            self.outcomes += calls.outcomes
            self.unsettled = ledger.unsettled()
            ledger.close()

    async def handle(self, to: str, context: sdk.ToolContext) -> dict[str, str]:
        self.ran[context.call_id] += 1
        await asyncio.sleep(self.world.random.choice([0.0, 0.01, 0.5, 3.0]))
        self.finished.add(context.call_id)
        return {"sent": to, "by": self.name}


async def schedule(seed: int, folder: Path) -> None:
    chance = random.Random(seed)
    world = World(
        seed,
        calls=chance.randint(1, 4),
        claims=chance.random() < 0.7,
        tool_seconds=chance.choice([20.0, 120.0, 600.0]),
    )
    ran: Counter[str] = Counter()
    # Two runners without claims need one ledger: that is what keeps them apart.
    count = chance.choice([1, 2])
    shared = not world.claims
    runners = [Runner(world, f"r{n}", folder / f"{seed}-{0 if shared else n}", ran) for n in range(count)]
    lives = [[chance.uniform(0.05, 6) for _ in range(chance.randint(0, 2))] for _ in runners]
    async with asyncio.timeout(3 * LONG):
        turn = asyncio.create_task(world.play())
        trouble = asyncio.create_task(disturb(world, chance))
        await asyncio.gather(*(runner.live(each) for runner, each in zip(runners, lives, strict=True)))
        await asyncio.gather(turn, trouble)
    check(world, runners, ran)


async def disturb(world: World, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 8)):
        await asyncio.sleep(chance.choice([0.0, 0.012, 0.3, 1.0, 4.0]) * chance.random())
        world.set_state(chance.choice(STATES))
        await asyncio.sleep(chance.choice([0.02, 0.5, 3.0, 12.0]) * chance.random())
        world.set_state("up")


def check(world: World, runners: list[Runner], ran: Counter[str]) -> None:
    assert [problem for runner in runners for problem in runner.problems] == []
    for call_id in world.calls:
        assert ran[call_id] <= 1, f"{call_id} ran {ran[call_id]} times"
    for runner in runners:
        told: dict[str, Any] = {item.call_id: item.outcome for item in runner.outcomes}
        kept = {record.call_id for record in runner.unsettled}
        for call_id in runner.finished:
            arrived = f'"by":"{runner.name}"' in world.results[call_id]
            assert arrived or call_id in told or call_id in kept, f"{call_id}: nobody is told of its output"
            if told.get(call_id) == "delivered":
                assert arrived, f"{call_id} is said to be delivered and is not"


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_no_tool_runs_twice_and_no_output_is_lost_unsaid(seed: int, tmp_path: Path) -> None:
    run(schedule(seed, tmp_path))


@pytest.mark.parametrize("state", [state for state in STATES if state != "up"])
@pytest.mark.parametrize("moment", [0.005, 0.012, 0.02, 0.03, 0.05, 0.5, 1.0])
def test_an_output_arrives_once_the_server_is_back(state: str, moment: float, tmp_path: Path) -> None:
    """One runner that stays alive, trouble of three seconds at one point of a call's life, a timeout of minutes."""

    async def play() -> None:
        world = World(1, calls=1, claims=True, tool_seconds=120.0)
        ran: Counter[str] = Counter()
        runner = Runner(world, "r0", tmp_path / "ledger", ran)

        async def trouble() -> None:
            while not world.deadlines:
                await world._changed.wait()
            await asyncio.sleep(moment)
            world.set_state(state)
            await asyncio.sleep(3)
            world.set_state("up")

        async with asyncio.timeout(LONG):
            await asyncio.gather(world.play(), trouble(), runner.live([]))
        check(world, [runner], ran)
        assert [item.outcome for item in runner.outcomes] == ["delivered"]
        assert ran == {world.calls[0]: 1}

    run(play())
