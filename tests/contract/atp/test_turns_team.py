"""A team at work: delegation, members, bounds, steering and cancelling."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from crocevia.config import Settings
from crocevia.core.turn import TurnLimits
from tests.contract.requirements import requirement
from tests.runtime.turns.theatre import TERMINALS, Theatre, Watcher, play, tool


def delegate(agent: str, task: str, mode: str = "foreground", title: str = "Work") -> dict[str, Any]:
    return {"tool": "delegate_task", "arguments": {"agent": agent, "task": task, "mode": mode, "title": title}}


SLOW = {"text": "one two three four five six seven eight", "every_ms": 40}
TEAM: dict[str, Any] = {
    "main": [
        {"when": {"contains": "foreground", "nth": 1}, "say": [delegate("finder", "find it")]},
        {
            "when": {"contains": "background", "nth": 1},
            "say": [{"text": "Off you go."}, delegate("writer", "write it", "background")],
        },
        {
            "when": {"contains": "both", "nth": 1},
            "say": [delegate("finder", "find it"), delegate("writer", "write it")],
        },
        {"when": {"contains": "never", "nth": 1}, "say": [delegate("sleeper", "sleep")]},
        {"when": {"after_tool": "delegate_task"}, "say": [{"text": "Result: {tool_result}"}]},
        {"say": [{"text": "Heard: {last_user}"}]},
    ],
    "finder": [{"say": [{"text": "Found."}]}],
    "writer": [{"say": [SLOW]}],
    "sleeper": [{"say": [{"delay_ms": 60_000}, {"text": "late"}]}],
}


def check_order(watcher: Watcher) -> None:
    """One start and one end per instance, text before it, children inside their parents, one terminal at the end."""
    opened: dict[str, str | None] = {}
    closed: set[str] = set()
    said: set[str] = set()
    for event in watcher.events:
        who = (event["agent"] or {}).get("instance_id")
        if event["type"] == "agent.started":
            assert who not in opened
            parent = event["data"]["parent_id"]
            assert parent == event["agent"]["parent_id"] and (parent is None or parent not in closed)
            opened[who] = parent
        elif event["type"] == "agent.text.done":
            said.add(who)
        elif event["type"] == "agent.done":
            assert who in opened and who not in closed
            assert all(child in closed for child, parent in opened.items() if parent == who)
            assert event["data"]["status"] != "completed" or who in said
            closed.add(who)
        elif who is not None and event["type"] != "agent.delegated":
            assert who in opened and (who not in closed or event["type"].startswith("approval"))
    assert closed == set(opened)
    assert [kind for kind in watcher.types if kind in TERMINALS] == watcher.types[-1:]
    total = watcher.events[-1]["data"]["usage"]
    parts = [event["data"]["usage"] for event in watcher.all("agent.done")]
    assert total["output_tokens"] >= sum(part["output_tokens"] for part in parts)
    assert total["tool_calls"] == sum(part["tool_calls"] for part in parts)


@requirement("T-DEL-1", "T-EVT-1")
def test_in_the_foreground_the_parent_waits_for_the_result() -> None:
    async def work(place: Theatre) -> None:
        watcher = await place.play("foreground")
        check_order(watcher)
        delegated = watcher.all("agent.delegated")[0]
        assert delegated["data"] | {"child_instance_id": ""} == {
            "child_instance_id": "",
            "child_name": "finder",
            "mode": "foreground",
            "title": "Work",
            "task": "find it",
        }
        child = next(event for event in watcher.all("agent.started") if event["agent"]["role"] == "member")
        assert child["agent"]["instance_id"] == delegated["data"]["child_instance_id"]
        assert child["data"]["parent_id"] == delegated["agent"]["instance_id"]
        assert watcher.text("main") == "Result: Found."

    play(TEAM, work)


@requirement("T-DEL-1")
def test_in_the_background_both_go_on_and_the_parent_hears_of_the_end() -> None:
    async def work(place: Theatre) -> None:
        watcher = await place.play("background")
        check_order(watcher)
        names = [event["agent"]["name"] for event in watcher.all("agent.text.delta")]
        assert "main" in names[names.index("writer") :]
        done = watcher.all("agent.text.done")
        assert [event["agent"]["role"] for event in done] == ["member", "orchestrator"]
        assert "Result: " in done[1]["data"]["text"] and "eight" in done[1]["data"]["text"]

    play(TEAM, work)


@requirement("T-DEL-1")
def test_children_work_at_the_same_time_each_in_its_own_context() -> None:
    async def work(place: Theatre) -> None:
        watcher = await place.play("both")
        check_order(watcher)
        assert len(watcher.all("agent.delegated")) == 2
        starts = [i for i, event in enumerate(watcher.events) if event["type"] == "agent.started"]
        dones = [i for i, event in enumerate(watcher.events) if event["type"] == "agent.done"]
        assert max(starts) < min(dones)
        assert watcher.text("main") == f"Result: Found.\n{SLOW['text']}"

    play(TEAM, work)


ENDLESS: dict[str, Any] = {
    "main": [{"when": {"nth": 1}, "say": [delegate("other", "again")]}, {"say": [{"text": "{tool_result}"}]}],
    "other": [
        {"when": {"nth": 1}, "say": [delegate("other", "again"), delegate("main", "again")]},
        {"say": [{"text": "{tool_result}"}]},
    ],
}


@requirement("T-DEL-2")
def test_members_that_always_delegate_come_to_an_end() -> None:
    async def work(place: Theatre) -> None:
        watcher = await place.play()
        check_order(watcher)
        assert watcher.types[-1] == "turn.completed"
        assert [event["agent"]["name"] for event in watcher.all("agent.started")] == ["main", "other", "other"]
        refusals = [json.loads(line)["code"] for line in watcher.text("main").splitlines()]
        assert refusals == ["limit_depth", "unknown_agent", "unknown_agent"]

    play(ENDLESS, work, agents={"other": {"tools_enabled": tool("delegate_task")}})


@requirement("T-DEL-2")
@pytest.mark.parametrize(
    ("limits", "code"),
    [(TurnLimits(rounds=3), "limit_rounds"), (TurnLimits(wall_ms=600), "limit_wall_time")],
)
def test_a_bound_that_is_reached_ends_the_turn_and_is_named(limits: TurnLimits, code: str) -> None:
    async def work(place: Theatre) -> None:
        watcher = await place.play("again", timeout=15)
        end = watcher.events[-1]
        assert (end["type"], end["data"]["code"]) == ("turn.failed", code)
        assert str(limits.rounds if code == "limit_rounds" else limits.wall_ms) in end["data"]["message"]
        check_order(watcher)

    say = [{"delay_ms": 50}, {"tool": "list", "arguments": {}}]
    turns = {"rounds": limits.rounds, "wall_seconds": (limits.wall_ms or 0) / 1000 or None}
    settings = Settings(turns=type(Settings().turns)(**turns))
    play({"main": [{"say": say}]}, work, settings=settings, agents={"main": {"tools_enabled": tool("list")}})


@requirement("T-STE-1")
@pytest.mark.parametrize("version", [2, 3])
def test_a_steer_is_read_at_the_next_boundary(version: int) -> None:
    scripts = {"main": [{"when": {"contains": "louder"}, "say": [{"text": "LOUDER"}]}, {"say": [SLOW]}]}

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, "speak")
        await watcher.until("agent.text.delta")
        reply = await place.post(chat, "steer", {"text": "louder", "target_agent_id": None}, version=version)
        assert (reply.status, reply.json) == (202, {"turn_id": turn})
        await watcher.end()
        steered = watcher.all("turn.steered")[0]
        assert steered["agent"] is None and steered["data"] == {"turn_id": turn, "text": "louder"}
        assert watcher.all("agent.text.done")[0]["data"]["text"] == f"{SLOW['text']}\n\nLOUDER"
        assert "turn.steer.applied" in watcher.types
        refused = await place.post(chat, "steer", {"text": "x"}, version=version)
        assert (refused.status, refused.json["error"]["code"]) == (409, "no_turn_in_progress")

    play(scripts, work)


@requirement("T-STE-1")
def test_a_steer_finds_the_member_it_is_meant_for_or_nobody() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        await place.say(chat, "never")
        child = await watcher.until(lambda e: e["type"] == "agent.started" and e["agent"]["name"] == "sleeper")
        target = child["agent"]["instance_id"]
        for wrong in ("", "ag_x", "cmpl_01j5abcdefghjkmnpqrstvwxyz", "ag_01j5abcdefghjkmnpqrstvwxyz"):
            refused = await place.post(chat, "steer", {"text": "x", "target_agent_id": wrong})
            assert refused.status == 422
        assert (await place.post(chat, "steer", {"text": ""})).status == 422
        reply = await place.post(chat, "steer", {"text": "wake up", "target_agent_id": target})
        assert reply.status == 202
        steered = await watcher.until("turn.steered")
        assert steered["data"]["target_agent_id"] == target
        assert len(watcher.all("turn.steered")) == 1
        await place.post(chat, "cancel")
        await watcher.end()
        dropped = watcher.all("turn.steer.dropped")
        assert len(dropped) == 1 and dropped[0]["data"]["reason"]
        check_order(watcher)

    play(TEAM, work)


@requirement("T-CAN-1")
@pytest.mark.parametrize("message", ["never", "both", "background", "go"])
def test_cancel_ends_everything_within_a_second_and_once(message: str) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, message)
        await watcher.until("agent.started")
        replies = await asyncio.gather(*(place.post(chat, "cancel", version=2 + n % 2) for n in range(4)))
        began = time.monotonic()
        assert {reply.status for reply in replies} <= {202, 409}
        end = await watcher.end()
        if replies[0].status == 202 and end["type"] != "turn.completed":
            assert end["type"] == "turn.cancelled" and end["data"]["reason"] == "user"
            assert time.monotonic() - began < 5  # a second, on a machine that has nothing else to do
            check_order(watcher)
        again = await place.post(chat, "cancel")
        assert (again.status, again.json["error"]["code"]) == (409, "no_turn_in_progress")
        assert place.service.gateway.active == 0
        following = await place.say(chat, "hi")
        assert (await watcher.end(following))["type"] == "turn.completed"
        assert len([e for e in watcher.events if e["type"] in TERMINALS and e["turn_id"] == turn]) == 1

    play(TEAM, work)


@requirement("T-EVT-1")
def test_a_model_that_fails_fails_the_turn_in_plain_words_and_the_chat_goes_on() -> None:
    scripts = {
        "main": [
            {"when": {"contains": "break"}, "say": [{"text": "Half of"}, {"error": "rejected"}]},
            {"say": [{"text": "ok"}]},
        ]
    }

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, "break")
        end = await watcher.end(turn)
        assert (end["type"], end["data"]["code"]) == ("turn.failed", "upstream_rejected")
        assert watcher.types[-3:] == ["agent.failed", "agent.done", "turn.failed"]
        check_order(watcher)
        assert (await watcher.end(await place.say(chat, "again")))["type"] == "turn.completed"

    play(scripts, work)


@requirement("T-EVT-1")
def test_what_a_lost_attempt_said_is_taken_back() -> None:
    scripts = {"main": [{"say": [{"text": "Half of"}, {"cut": True}]}]}

    async def work(place: Theatre) -> None:
        watcher = await place.play()
        assert (watcher.types[-1], watcher.events[-1]["data"]["code"]) == ("turn.failed", "upstream_failed")
        assert watcher.types.count("agent.text.reset") >= 1
        assert watcher.types.index("agent.text.delta") < watcher.types.index("agent.text.reset")

    play(scripts, work)
