"""The whole server is killed with signal 9 while a team works: nothing is lost, doubled or left open."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.doors.atp.schema import check_event

from .breeder import Breeder
from .turns_rig import TERMINALS, Follower, Rig, seeded, session

SLOWLY = {"every_ms": 20}
PRICES = {"input": 1.0, "output": 10.0}


def delegate(agent: str, mode: str) -> dict[str, Any]:
    return {"tool": "delegate_task", "arguments": {"agent": agent, "task": "go", "mode": mode}}


SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "lead": [
        {
            "when": {"after_tool": "phone"},
            "say": [{"text": "The phone said {tool_result}, and that is all.", **SLOWLY}],
        },
        {
            "when": {"after_tool": "delegate_task"},
            "say": [{"text": "Both are at work now.", **SLOWLY}, {"tool": "phone", "arguments": {"n": 1}}],
        },
        {"when": {"contains": '"status":"completed"'}, "say": [{"text": "Good to hear.", **SLOWLY}, {"tool": "phone"}]},
        {
            "say": [
                {"text": "Let us begin.", **SLOWLY},
                delegate("writer", "background"),
                delegate("finder", "foreground"),
            ]
        },
    ],
    "finder": [
        *(
            {"when": {"nth": step}, "say": [{"text": f"Step {step} of it.", **SLOWLY}, {"tool": "list"}]}
            for step in range(1, 25)  # more than one life of the server is long enough for
        ),
        {"say": [{"text": "Found it in the end.", **SLOWLY}]},
    ],
    "writer": [{"say": [{"text": "A long text that takes its time to be written down word by word.", **SLOWLY}]}],
}


def declaration() -> dict[str, Any]:
    return {
        "engines": [{"name": f"e-{name}", "kind": "scripted", "script": script} for name, script in SCRIPTS.items()],
        "models": [{"name": f"m-{name}", "engine": f"e-{name}", "prices": PRICES} for name in SCRIPTS],
        "agents": [
            {"name": name, "mode": "primary" if name == "lead" else "subagent", "model": f"m-{name}", "tools": ["list"]}
            for name in SCRIPTS
        ],
        "teams": [{"name": "crew", "orchestrator": "lead", "members": ["finder", "writer"]}],
    }


LANES = 2  # chats in which a turn is open at the same time, each with a client of its own


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_team_survives_a_few_kills(tmp_path: Path, breeder: Breeder) -> None:
    asyncio.run(torment(tmp_path, breeder, rounds=1, deaths=4))


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    "turns", [pytest.param(12, marks=pytest.mark.torture), pytest.param(60, marks=pytest.mark.long)]
)
def test_a_team_survives_five_kills_in_each_of_many_turns(
    tmp_path: Path, breeder: Breeder, capsys: pytest.CaptureFixture[str], turns: int
) -> None:
    def tell(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    asyncio.run(torment(tmp_path, breeder, rounds=turns // LANES, deaths=5 * LANES, tell=tell))


async def torment(
    home: Path, breeder: Breeder, *, rounds: int, deaths: int, tell: Callable[[str], None] = lambda line: None
) -> None:
    """In each round a turn is opened in every lane, and the server dies so many times before the next."""
    rig, chance, began, hits = Rig(home, declaration(), breeder), seeded(), time.monotonic(), 0
    rig.start()
    try:
        async with session() as client:
            await rig.up(client)
            await client_tool(rig, client)
            lanes = [Lane(rig, client, await rig.chat(client, "crew")) for _ in range(LANES)]
            helpers = [asyncio.create_task(work()) for lane in lanes for work in (lane.follower.run, lane.run_tools)]
            try:
                for number in range(rounds):
                    turns = [asyncio.create_task(lane.turn(f"turn {number}")) for lane in lanes]
                    for _ in range(deaths):
                        await asyncio.sleep(chance.uniform(0.0, 0.5))
                        hits += any(not turn.done() for turn in turns)
                        rig.kill()
                        rig.start()
                        await rig.up(client)
                    await asyncio.gather(*turns)
                    seconds, done = time.monotonic() - began, number + 1
                    tell(f"{done * LANES} turns, {done * deaths} kills, {hits} of them in open turns, {seconds:.0f} s")
            finally:
                for helper in helpers:
                    helper.cancel()
                ended = await asyncio.gather(*helpers, return_exceptions=True)
            assert all(isinstance(error, asyncio.CancelledError) for error in ended), ended
            for lane in lanes:
                check(lane, rounds)
                await replayed(rig, client, lane)
                await priced(rig, client, lane)
        assert hits > rounds * deaths / 2
        events = sum(len(lane.follower.events) for lane in lanes)
        calls = sum(len(lane.ran) for lane in lanes)
        tell(f"{events} events without a gap, live equal to replay; {calls} calls of the client's tool, each run once")
    finally:
        rig.stop()


class Lane:
    """One chat, and a client that talks to it through every crash. ran: how often each call of its tool was run."""

    def __init__(self, rig: Rig, client: Any, chat: str) -> None:
        self.rig = rig
        self.client = client
        self.follower = Follower(rig, client, chat)
        self.ran: Counter[str] = Counter()
        self.ends: list[dict[str, Any]] = []

    async def turn(self, message: str) -> None:
        """One turn to its end; sent again afterwards, it is the same turn."""
        path = f"/atp/v3/chats/{self.follower.chat}/messages"
        sending = {"body": {"message": message}, "Idempotency-Key": f"key-{message.replace(' ', '-')}"}
        status, accepted = await self.rig.call(self.client, "POST", path, **sending)
        assert status == 202, accepted
        self.ends.append(await self.follower.terminal(accepted["turn_id"]))
        assert await self.rig.call(self.client, "POST", path, **sending) == (202, accepted)

    async def run_tools(self) -> None:
        """A runner that keeps a ledger: it runs a call once, and hands its output over until that is settled."""
        at, events = 0, self.follower.events
        while True:
            while at < len(events):
                event, at = events[at], at + 1
                if event["type"] == "agent.tool.request":
                    call = event["data"]["call_id"]
                    self.ran[call] += 1
                    body = {"call_id": call, "output": f"ring {call}"}
                    path = f"/atp/v3/chats/{self.follower.chat}/tool-output"
                    status, _ = await self.rig.call(self.client, "POST", path, body)
                    assert status in (204, 404, 409)
            await asyncio.sleep(0.01)  # the follower's event is its own waiter's


async def replayed(rig: Rig, client: Any, lane: Lane) -> None:
    """Read from the beginning, a chat is what was seen of it live."""
    replay = Follower(rig, client, lane.follower.chat)
    reading = asyncio.create_task(replay.run())
    await replay.terminal(lane.ends[-1]["turn_id"])
    reading.cancel()
    assert replay.events == lane.follower.events


async def priced(rig: Rig, client: Any, lane: Lane) -> None:
    """What the kills cost is known, so that clients of version 2 are served."""
    assert all(end["data"]["cost"] > 0 for end in lane.ends)
    where = f"/workspaces/{rig.secrets['workspace_id']}/chats/{lane.follower.chat}/completions?per_page=100"
    status, page = await rig.call(client, "GET", where, **{"x-envai-contract-version": "2"})
    assert (status, len(page["data"])) == (200, len(lane.ends)), page


async def client_tool(rig: Rig, client: Any) -> None:
    await rig.call(
        client, "POST", "/tools", {"name": "phone", "parameters": {"type": "object"}, "timeout_seconds": 600}
    )
    _, listed = await rig.call(client, "GET", "/agents")
    lead = next(item["id"] for item in listed["data"] if item["name"] == "lead")
    status, _ = await rig.call(client, "PUT", f"/agents/{lead}", {"external_tools_enabled": [{"name": "phone"}]})
    assert status == 200


def check(lane: Lane, turns: int) -> None:
    events, ran, ends = lane.follower.events, lane.ran, lane.ends
    for event in {(event["type"], *sorted(event["data"])): event for event in events}.values():
        check_event(event, 3)  # one of each shape: a look costs milliseconds
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [end["type"] for end in ends] == ["turn.completed"] * turns
    assert len([event for event in events if event["type"] in TERMINALS]) == turns
    assert len([event for event in events if event["type"] == "turn.started"]) == turns
    per_call: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event["type"].startswith("agent.tool."):
            per_call[event["type"], event["data"]["call_id"]] += 1
    assert set(per_call.values()) == {1}  # asked for once, begun once, answered once
    assert set(ran.values()) == {1} and len(ran) >= turns
    assert set(ran) == {call for kind, call in per_call if kind == "agent.tool.request"}
    opened = Counter(event["agent"]["instance_id"] for event in events if event["type"] == "agent.started")
    closed = Counter(event["agent"]["instance_id"] for event in events if event["type"] == "agent.done")
    assert opened == closed and set(opened.values()) == {1} and len(opened) == 3 * turns
    for end in ends:
        said = "".join(
            event["data"]["delta"] if event["type"] == "agent.text.delta" else "\0"
            for event in events
            if event["turn_id"] == end["turn_id"]
            and (event["agent"] or {}).get("role") == "orchestrator"
            and event["type"] in ("agent.text.delta", "agent.text.reset")
        ).rpartition("\0")[2]
        whole = next(
            event["data"]["text"]
            for event in events
            if event["type"] == "agent.text.done"
            and event["turn_id"] == end["turn_id"]
            and event["agent"]["role"] == "orchestrator"
        )
        assert said == whole  # what was heard, resets taken into account, is what was said
