"""Permissions: what an agent may do, whom it asks, and what their answer is worth."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from tests.contract.atp.test_turns_team import check_order, delegate
from tests.contract.requirements import requirement
from tests.runtime.turns.theatre import Event, Theatre, Watcher, play, tool

WRITE = {"tool": "write", "arguments": {"path": "/note.txt", "content": "written"}}
ALONE: dict[str, Any] = {
    "main": [{"when": {"after_tool": True}, "say": [{"text": "So: {tool_result}"}]}, {"say": [WRITE]}]
}
ASKS = {"tools_enabled": tool("write"), "permissions": {"write": "ask"}, "config": {"approval_seconds": 60}}


async def asked(place: Theatre, message: str = "go") -> tuple[str, Watcher, Event]:
    chat = await place.chat()
    watcher = await place.watch(chat)
    await place.say(chat, message)
    return chat, watcher, await watcher.until("approval.request")


def note(place: Theatre) -> str | None:
    path = place.home.files / place.made.workspace_id / "note.txt"
    return path.read_text() if path.exists() else None


@requirement("T-APP-1")
@pytest.mark.parametrize(("approve", "version"), [(True, 3), (False, 3), (True, 2)])
def test_nothing_happens_before_the_user_agrees_or_after_they_refuse(approve: bool, version: int) -> None:
    async def work(place: Theatre) -> None:
        chat, watcher, event = await asked(place)
        data = event["data"]
        assert note(place) is None and "agent.tool.start" not in watcher.types
        assert (data["tool_name"], data["args"]) == ("write", WRITE["arguments"])
        left = datetime.fromisoformat(data["deadline"]) - datetime.fromisoformat(event["ts"])
        assert 55 <= left.total_seconds() <= 65
        refused = await place.post(chat, "messages", {"message": "hello?"})
        assert refused.json["error"]["details"]["waiting_for"] == "approval"
        body = {"approval_id": data["approval_id"], "approve": approve}
        replies = await asyncio.gather(*(place.post(chat, "approval", body, version=version) for _ in range(3)))
        assert sorted(reply.status for reply in replies)[0] == 204
        assert {reply.status for reply in replies} <= {204, 404, 409}
        await watcher.end()
        response = watcher.all("approval.response")
        assert [item["agent"] for item in response] == [None]
        assert response[0]["data"] == {"approval_id": data["approval_id"], "approve": approve, "reason": ""}
        assert note(place) == ("written" if approve else None)
        assert ("approval_denied" in watcher.text("main")) is not approve
        late = await place.post(chat, "approval", body)
        assert late.status == 404
        check_order(watcher)

    play(ALONE, work, agents={"main": ASKS})


@requirement("T-APP-1")
def test_an_approval_that_nobody_gives_expires_closed_and_the_turn_goes_on() -> None:
    scripts: dict[str, Any] = {
        "main": [
            {"when": {"after_tool": True}, "say": [{"text": "So: {tool_result}"}]},
            {"say": [WRITE, {"tool": "wait"}]},
        ]
    }
    agents = ASKS | {"config": {"approval_seconds": 1}, "external_tools_enabled": tool("wait")}

    async def work(place: Theatre) -> None:
        await place.call("POST", "/api/v1/tools", {"name": "wait", "parameters": {"type": "object"}})
        chat, watcher, event = await asked(place)
        expired = await watcher.until("approval.expire")
        assert expired["data"] == {"approval_id": event["data"]["approval_id"]} and expired["agent"] is not None
        late = await place.post(chat, "approval", {"approval_id": event["data"]["approval_id"], "approve": True})
        assert (late.status, late.json["error"]["code"]) == (409, "approval_expired")
        call = (await watcher.until("agent.tool.request"))["data"]["call_id"]
        await place.post(chat, "tool-output", {"call_id": call, "output": "x"})
        assert (await watcher.end())["type"] == "turn.completed"
        assert note(place) is None and "approval_expired" in watcher.text("main")

    play(scripts, work, agents={"main": agents})


@requirement("T-APP-1")
def test_an_approval_waits_through_a_restart() -> None:
    async def work(place: Theatre) -> None:
        chat, watcher, event = await asked(place)
        before = list(watcher.events)
        await place.reopen()
        unknown = await place.post(chat, "approval", {"approval_id": "apr_x", "approve": True})
        assert unknown.status == 404
        other = await place.chat()
        body = {"approval_id": event["data"]["approval_id"], "approve": True, "reason": "go ahead"}
        assert (await place.post(other, "approval", body)).status == 404
        assert (await place.post(chat, "approval", body)).status == 204
        watcher = await place.watch(chat)
        await watcher.end()
        assert watcher.events[: len(before)] == before
        assert len(watcher.all("approval.request")) == 1
        assert watcher.all("approval.response")[0]["data"]["reason"] == "go ahead"
        assert note(place) == "written"

    play(ALONE, work, agents={"main": ASKS})


@requirement("T-APP-1")
def test_what_is_denied_is_never_asked_about() -> None:
    async def work(place: Theatre) -> None:
        watcher = await place.play()
        assert "approval.request" not in watcher.types and note(place) is None
        assert "tool_denied" in watcher.text("main")

    play(ALONE, work, agents={"main": ASKS | {"permissions": {"write": "deny"}}})


def decides(decision: str) -> dict[str, Any]:
    return {
        "main": [
            {"when": {"nth": 1}, "say": [delegate("helper", "write the note")]},
            {"when": {"contains": "nothing"}, "say": [{"text": "no"}]},
            {
                "when": {"nth": 2},
                "say": [{"tool": "answer_escalation", "arguments": {"escalation_id": "{id}", "decision": decision}}],
            },
            {"say": [{"text": "Then: {tool_result}"}]},
        ],
        "helper": [{"when": {"after_tool": True}, "say": [{"text": "I was told {tool_result}"}]}, {"say": [WRITE]}],
    }


@requirement("T-APP-2")
def test_a_question_that_the_orchestrator_passes_over_is_a_no() -> None:
    scripts = decides("approve")
    scripts["main"][2] = {"when": {"nth": 2}, "say": [{"text": "I do not care."}]}

    async def work(place: Theatre) -> None:
        watcher = await place.play()
        assert watcher.all("agent.escalate")[0]["agent"]["name"] == "helper"
        result = watcher.all("agent.escalation.result")[0]
        assert result["agent"]["role"] == "orchestrator" and result["data"]["approve"] is False
        assert note(place) is None
        check_order(watcher)

    play(scripts, work, agents={"helper": ASKS})


@requirement("T-APP-2")
@pytest.mark.parametrize("decision", ["approve", "deny", "ask_user"])
def test_a_member_asks_its_orchestrator_who_decides_or_asks_the_user(decision: str, monkeypatch: Any) -> None:
    # A script cannot read an id out of a result: the only escalation of the turn is given a name that it can write.
    from crocevia.core.turn import rules

    real = rules.derive
    monkeypatch.setattr(rules, "derive", lambda prefix, *rest: "esc_1" if prefix == "esc" else real(prefix, *rest))
    scripts = decides(decision)
    scripts["main"][2]["say"][0]["arguments"]["escalation_id"] = "esc_1"

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        await place.say(chat, "go")
        if decision == "ask_user":
            request = await watcher.until("approval.request")
            helper = next(e for e in watcher.all("agent.started") if e["agent"]["name"] == "helper")
            assert request["data"]["origin_agent_id"] == helper["agent"]["instance_id"]
            assert request["agent"]["role"] == "orchestrator"
            body = {"approval_id": request["data"]["approval_id"], "approve": True}
            assert (await place.post(chat, "approval", body)).status == 204
        await watcher.end()
        result = watcher.all("agent.escalation.result")[0]["data"]
        assert result["approve"] is (decision != "deny")
        assert note(place) == (None if decision == "deny" else "written")
        check_order(watcher)

    play(scripts, work, agents={"helper": ASKS})
