"""The table of permissions: every spelling, at every entrance, for every kind of tool."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from crocevia.cli import health
from crocevia.core.declared import Refused
from crocevia.runtime.control.apply import apply
from crocevia.runtime.control.declarations import parse
from crocevia.storage.database import immediate
from tests.contract.requirements import requirement
from tests.runtime.turns.theatre import Theatre, play, tool

# A tool of the server, of its knowledge, of a program outside, and of the team.
CALLS = [
    {"tool": "write", "arguments": {"path": "/n", "content": "x"}},
    {"tool": "wiki_ls", "arguments": {"path": "/"}},
    {"tool": "phone"},
    {"tool": "delegate_task", "arguments": {"agent": "member", "task": "work"}},
]
NAMES = ["write", "wiki_ls", "phone", "delegate_task"]
SCRIPTS: dict[str, Any] = {
    "main": [{"when": {"after_tool": True}, "say": [{"text": "over"}]}, {"say": CALLS}],
    "member": [{"say": [{"text": "done"}]}],
}
TOOLS = {
    "tools_enabled": tool("write", "wiki_ls"),
    "external_tools_enabled": tool("phone"),
    "config": {"approval_seconds": 60},
}
UNKNOWN: list[Any] = ["denied", "Deny", "no", "false", "", None, 1, 0, False, True, 0.5, {"mode": "deny"}, ["deny"]]
RULES: list[tuple[Any, str]] = [
    *(({name: rule for name in NAMES}, rule) for rule in ("allow", "ask", "deny")),
    *(({"*": rule}, rule) for rule in ("allow", "ask", "deny")),
    ({"*": "allow"} | {name: "deny" for name in NAMES}, "deny"),
    ({"*": "deny"} | {name: "allow" for name in NAMES}, "allow"),
    ({}, "allow"),
    *(({name: rule for name in NAMES}, "deny") for rule in UNKNOWN),
    *(({"*": rule}, "deny") for rule in UNKNOWN),
]


def store(place: Theatre, **columns: Any) -> None:
    """As another version, or another hand, may have left the row of the leader."""
    with immediate(place.home.database) as tx:
        for name, value in columns.items():
            text = value if isinstance(value, str) else json.dumps(value)
            tx.connection.execute(f"UPDATE agents SET {name} = ? WHERE name = 'main'", (text,))


async def outcome(place: Theatre) -> str:
    """What became of the four calls of one turn: the same for all of them."""
    chat = await place.chat()
    watcher = await place.watch(chat)
    turn = await place.say(chat, "go")

    def settled(event: dict[str, Any]) -> bool:
        return event["type"] in ("approval.request", "agent.tool.request", "turn.completed", "turn.failed")

    seen = "allow"
    if (await watcher.until(settled))["type"] == "approval.request":
        seen = "ask"
        for number in range(1, len(NAMES) + 1):
            await watcher.until(lambda _, n=number: len(watcher.all("approval.request")) >= n)  # type: ignore[misc]
        assert not watcher.all("agent.tool.start") and not watcher.all("agent.tool.request")
        assert sorted(event["data"]["tool_name"] for event in watcher.all("approval.request")) == sorted(NAMES)
        assert (await place.post(chat, "cancel")).status == 202
        await watcher.end(turn)
        return seen
    for request in watcher.all("agent.tool.request"):
        body = {"call_id": request["data"]["call_id"], "output": "rang"}
        assert (await place.post(chat, "tool-output", body)).status == 204
    assert (await watcher.end(turn))["type"] == "turn.completed"
    denied = [event for event in watcher.all("agent.tool.complete") if "not allowed" in str(event["data"])]
    if denied:
        assert len(denied) == len(NAMES), denied
        seen = "deny"
    else:
        called = [event["data"]["tool_name"] for event in watcher.all("agent.tool.request")]
        assert called == ["phone"] and "agent.started" in watcher.types[2:], (
            watcher.types,
            watcher.all("agent.tool.complete"),
        )
    return seen


@requirement("A-AGT-3")
@pytest.mark.slow
def test_only_allow_runs_a_stored_ask_asks_and_everything_else_is_denied() -> None:
    async def work(place: Theatre) -> None:
        await place.call("POST", "/api/v1/tools", {"name": "phone", "parameters": {"type": "object"}})
        for permissions, expected in RULES:
            await asyncio.to_thread(store, place, permissions=permissions)
            seen = await outcome(place)
            assert seen == expected, permissions

    play(SCRIPTS, work, agents={"main": TOOLS}, timeout=55)


@requirement("A-AGT-3")
def test_what_is_no_rule_is_refused_over_the_api() -> None:
    async def work(place: Theatre) -> None:
        body = {"name": "new", "system_prompt": "Act.", "mode": "subagent"}
        made = (await place.call("POST", "/api/v1/agents", body)).data["id"]
        for rule in UNKNOWN:
            for name in ("write", "*"):
                given = {"permissions": {name: rule, "read": "allow"}}
                for reply in (
                    await place.call("POST", "/api/v1/agents", body | {"name": "other"} | given),
                    await place.call("PUT", f"/api/v1/agents/{made}", given),
                ):
                    assert reply.status == 422, rule
                    assert list(reply.json["error"]["details"]) == ["permissions"]
        for rule in ("allow", "ask", "deny"):
            for name in ("write", "*"):
                given = {"permissions": {name: rule}}
                assert (await place.call("PUT", f"/api/v1/agents/{made}", given)).data["permissions"] == {name: rule}

    play(SCRIPTS, work)


BOUNDS: list[tuple[str, Any]] = [
    *(
        (name, value)
        for name in ("max_rounds", "parallel_tools", "approval_seconds")
        for value in ("3", -1, 0, 1.5, True, [])
    ),
    *(("compact_at", value) for value in ("0.5", 0, -0.1, 1.1, True)),
    *(("tool_choice", value) for value in (1, {"a": 1}, ["auto", 1])),
]


@requirement("A-AGT-3")
def test_a_bound_that_is_none_is_refused_over_the_api_and_in_a_declaration() -> None:
    async def work(place: Theatre) -> None:
        body = {"name": "new", "system_prompt": "Act.", "mode": "subagent"}
        for name, value in BOUNDS:
            reply = await place.call("POST", "/api/v1/agents", body | {"config": {name: value}})
            assert reply.status == 422, (name, value)
            assert list(reply.json["error"]["details"]) == [f"config.{name}"]
            with pytest.raises(Refused) as refused:
                await asyncio.to_thread(apply, place.home, declared(config={name: value}))
            assert [problem.place for problem in refused.value.problems] == [f'agents "new".config.{name}']
        theirs = {"config": {"max_rounds": 3, "compact_at": 0.5, "colour": {"of": "hers"}}}
        assert (await place.call("POST", "/api/v1/agents", body | theirs)).data["config"] == theirs["config"]

    play(SCRIPTS, work)


def declared(**fields: Any) -> Any:
    import tomli_w

    entry = {"name": "new", "mode": "subagent"} | fields
    return parse(tomli_w.dumps({"agents": [entry]}).encode())


@requirement("A-AGT-3")
@pytest.mark.parametrize("rule", [rule for rule in UNKNOWN if rule is not None])  # TOML has no null
def test_what_is_no_rule_is_refused_in_a_declaration(rule: Any) -> None:
    """The panel's form is read as a declaration too."""
    with pytest.raises(Refused):
        declared(permissions={"write": rule})


@requirement("A-AGT-3")
def test_a_row_that_cannot_be_read_stops_its_agent_in_plain_words_and_nobody_else() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        for column, stored in (("permissions", "["), ("permissions", '["deny"]'), ("config", "7"), ("config", "")):
            await asyncio.to_thread(store, place, **{"permissions": "{}", "config": "{}", column: stored})
            listed = await place.call("GET", "/api/v1/agents")
            assert listed.status == 200 and {one["name"] for one in listed.data} >= {"main", "member"}
            refused = await place.post(chat, "messages", {"message": "hi"})
            assert refused.status == 409, refused.raw
            assert "main" in refused.json["error"]["message"] and column in refused.json["error"]["message"]
        main = next(one["id"] for one in listed.data if one["name"] == "main")
        assert (await place.call("PUT", f"/api/v1/agents/{main}", {"permissions": {}, "config": {}})).status == 200
        assert (await place.post(chat, "messages", {"message": "hi"})).status == 202

    play(SCRIPTS, work)


@requirement("A-AGT-3")
def test_the_doctor_names_who_said_what_was_ignored() -> None:
    async def work(place: Theatre) -> None:
        def found() -> list[tuple[str, Any, Any]]:
            looked = list(health.store(place.home))
            return [(one.level, one.message.key, one.message.details) for one in looked if one.area == "agents"]  # type: ignore[union-attr]

        assert await asyncio.to_thread(found) == []
        stored = {"permissions": {"write": "Deny", "read": "ask"}, "config": {"max_rounds": "3", "hers": 1}}
        await asyncio.to_thread(store, place, **stored)
        fields = {"agent": "main", "fields": "permissions.write, config.max_rounds"}
        assert await asyncio.to_thread(found) == [("warn", "doctor_agent", fields)]
        await asyncio.to_thread(store, place, permissions="[", config="{}")
        assert [level for level, *_ in await asyncio.to_thread(found)] == ["bad"]

    play(SCRIPTS, work)


@requirement("A-AGT-3")
def test_bounds_that_a_row_holds_by_mistake_are_not_set() -> None:
    async def work(place: Theatre) -> None:
        await asyncio.to_thread(store, place, config={"max_rounds": "1", "parallel_tools": -1, "compact_at": 7})
        assert (await (await place.watch(await said(place))).end())["type"] == "turn.completed"
        await asyncio.to_thread(store, place, config={"max_rounds": 1})
        assert (await (await place.watch(await said(place))).end())["type"] != "turn.completed"

    async def said(place: Theatre) -> str:
        chat = await place.chat()
        await place.say(chat, "go")
        return chat

    play(SCRIPTS, work, agents={"main": {"tools_enabled": tool("write")}})
