"""The whole server is killed with signal 9 while a team works: nothing is lost, doubled or left open."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .turns_rig import TERMINALS, Follower, Rig, seeded, session

SLOWLY = {"every_ms": 15}


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
        {"when": {"contains": '"status":"completed"'}, "say": [{"text": "Good to hear.", **SLOWLY}]},
        {
            "say": [
                {"text": "Let us begin.", **SLOWLY},
                delegate("writer", "background"),
                delegate("finder", "foreground"),
            ]
        },
    ],
    "finder": [
        {"when": {"after_tool": True}, "say": [{"text": "Found it in the end.", **SLOWLY}]},
        {"say": [{"tool": "list", "arguments": {}}]},
    ],
    "writer": [{"say": [{"text": "A long text that takes its time to be written down word by word.", **SLOWLY}]}],
}


def declaration() -> dict[str, Any]:
    return {
        "engines": [{"name": f"e-{name}", "kind": "scripted", "script": script} for name, script in SCRIPTS.items()],
        "models": [{"name": f"m-{name}", "engine": f"e-{name}"} for name in SCRIPTS],
        "agents": [
            {"name": name, "mode": "primary" if name == "lead" else "subagent", "model": f"m-{name}", "tools": ["list"]}
            for name in SCRIPTS
        ],
        "teams": [{"name": "crew", "orchestrator": "lead", "members": ["finder", "writer"]}],
    }


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_team_survives_a_few_kills(tmp_path: Path) -> None:
    asyncio.run(torment(tmp_path, turns=2, kills=4))


@pytest.mark.torture
@pytest.mark.timeout(5400)
def test_a_team_survives_three_hundred_kills_over_sixty_turns(tmp_path: Path) -> None:
    asyncio.run(torment(tmp_path, turns=60, kills=300))


async def torment(home: Path, *, turns: int, kills: int) -> None:
    rig, chance = Rig(home, declaration()), seeded()
    rig.start()
    try:
        async with session() as client:
            await rig.up(client)
            await client_tool(rig, client)
            chat = await rig.chat(client, "crew")
            follower = Follower(rig, client, chat)
            ran: Counter[str] = Counter()
            helpers = [asyncio.create_task(follower.run()), asyncio.create_task(run_tools(rig, client, follower, ran))]
            ends = []
            try:
                for turn in range(turns):
                    deadly = kills // turns + (turn < kills % turns)
                    killing = asyncio.create_task(kill(rig, client, chance, deadly))
                    body = {"message": f"turn {turn}"}
                    path, key = f"/atp/v3/chats/{chat}/messages", f"key-{turn}"
                    status, accepted = await rig.call(client, "POST", path, body, **{"Idempotency-Key": key})
                    assert status == 202, accepted
                    ends.append(await follower.terminal(accepted["turn_id"]))
                    await killing
                    again = await rig.call(client, "POST", path, body, **{"Idempotency-Key": key})
                    assert again == (202, accepted)
            finally:
                for helper in helpers:
                    helper.cancel()
                done = await asyncio.gather(*helpers, return_exceptions=True)
            assert all(isinstance(error, asyncio.CancelledError) for error in done), done
            check(follower, turns, ran, ends)
            replay = Follower(rig, client, chat)
            reading = asyncio.create_task(replay.run())
            await replay.terminal(ends[-1]["turn_id"])
            reading.cancel()
            assert replay.events == follower.events[: len(replay.events)]
            assert len(replay.events) == len(follower.events)
    finally:
        rig.stop()


async def client_tool(rig: Rig, client: Any) -> None:
    await rig.call(
        client, "POST", "/tools", {"name": "phone", "parameters": {"type": "object"}, "timeout_seconds": 600}
    )
    _, listed = await rig.call(client, "GET", "/agents")
    lead = next(item["id"] for item in listed["data"] if item["name"] == "lead")
    status, _ = await rig.call(client, "PUT", f"/agents/{lead}", {"external_tools_enabled": [{"name": "phone"}]})
    assert status == 200


async def kill(rig: Rig, client: Any, chance: Any, times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(chance.uniform(0.0, 0.5))
        rig.kill()
        rig.start()
        await rig.up(client)


async def run_tools(rig: Rig, client: Any, follower: Follower, ran: Counter[str]) -> None:
    """A runner that keeps a ledger: it runs a call once, and hands its output over until that is settled."""
    at = 0
    while True:
        while at < len(follower.events):
            event, at = follower.events[at], at + 1
            if event["type"] == "agent.tool.request":
                call = event["data"]["call_id"]
                ran[call] += 1
                body = {"call_id": call, "output": f"ring {call}"}
                status, _ = await rig.call(client, "POST", f"/atp/v3/chats/{follower.chat}/tool-output", body)
                assert status in (204, 404, 409)
        await asyncio.sleep(0.01)  # the follower's event is its own waiter's


def check(follower: Follower, turns: int, ran: Counter[str], ends: list[dict[str, Any]]) -> None:
    events = follower.events
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [end["type"] for end in ends] == ["turn.completed"] * turns
    assert len([event for event in events if event["type"] in TERMINALS]) == turns
    assert len([event for event in events if event["type"] == "turn.started"]) == turns
    per_call: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event["type"].startswith("agent.tool."):
            per_call[event["type"], event["data"]["call_id"]] += 1
    assert set(per_call.values()) == {1}  # asked for once, begun once, answered once
    assert set(ran.values()) == {1}
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
