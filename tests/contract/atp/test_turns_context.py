"""What a chat remembers: forks, restores, titles, summaries, and what its agents know."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.atp.test_turns_team import check_order
from tests.contract.requirements import requirement
from tests.runtime.turns.theatre import Theatre, play, tool

# Answers show what the model was given: how many answers came before, and the last results.
LIST = {"tool": "list", "arguments": {}}
ECHO: dict[str, Any] = {
    "main": [
        {"when": {"contains": "slow"}, "say": [{"delay_ms": 60_000}, {"text": "late"}]},
        {"when": {"after_tool": True}, "say": [{"text": "Used a tool."}]},
        {"when": {"contains": "tool"}, "say": [LIST]},
        *({"when": {"nth": n}, "say": [{"text": f"Answer {n}."}]} for n in range(1, 9)),
    ]
}
TOOLS = {"main": {"tools_enabled": tool("list", "set_chat_title")}}


async def talk(place: Theatre, chat: str, *messages: str) -> str:
    """What the orchestrator said to the last message."""
    watcher = await place.watch(chat)
    for message in messages:
        turn = await place.say(chat, message)
        await watcher.end(turn)
    said: str = watcher.all("agent.text.done")[-1]["data"]["text"]
    return said


async def title(place: Theatre, chat: str) -> Any:
    reply = await place.call("GET", f"/api/v1/workspaces/{place.made.workspace_id}/chats/{chat}")
    return reply.data["title"]


@requirement("T-FRK-1")
@pytest.mark.parametrize("version", [2, 3])
def test_a_fork_knows_everything_and_then_goes_its_own_way(version: int) -> None:
    async def work(place: Theatre) -> None:
        source, copy = await place.chat(), await place.chat()
        assert await talk(place, source, "tool", "x") == "Answer 3."
        reply = await place.post(source, "fork", {"destination_chat_id": copy}, version=version)
        assert (reply.status, reply.json) == (200, {"source_chat_id": source, "destination_chat_id": copy})
        assert await title(place, copy) is None
        watcher = await place.watch(copy)
        await watcher.pinged()
        assert watcher.events == []
        await place.reopen()
        assert await talk(place, copy, "y") == "Answer 4."
        assert await talk(place, copy, "z") == "Answer 5."
        assert await talk(place, source, "z") == "Answer 4."

    play(ECHO, work, agents=TOOLS)


@requirement("T-FRK-1")
def test_a_fork_needs_an_empty_idle_chat_of_the_same_owner_and_workspace() -> None:
    async def work(place: Theatre) -> None:
        source, busy, used = await place.chat(), await place.chat(), await place.chat()
        await talk(place, source, "x")
        await talk(place, used, "x")
        await place.say(busy, "slow")
        other = (await place.call("POST", "/api/v1/workspaces", {"name": "other"})).data["id"]
        far = await place.chat(workspace=other)
        for wrong in (source, busy, used, far, "cht_01j5abcdefghjkmnpqrstvwxyz", "x", ""):
            reply = await place.post(source, "fork", {"destination_chat_id": wrong})
            assert (reply.status, reply.json["error"]["code"]) == (422, "invalid_fork_destination"), wrong
        empty = await place.chat()
        reply = await place.post(busy, "fork", {"destination_chat_id": empty})
        assert (reply.status, reply.json["error"]["code"]) == (409, "turn_in_progress")
        assert (await place.post(source, "fork", {"destination_chat_id": empty})).status == 200
        again = await place.post(source, "fork", {"destination_chat_id": empty})
        assert again.status == 422
        assert (await place.post(busy, "cancel")).status == 202

    play(ECHO, work)


@requirement("T-RST-1")
@pytest.mark.parametrize("version", [2, 3])
def test_a_restore_replaces_what_is_remembered(version: int) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        await talk(place, chat, "x", "y", "z")
        named = await title(place, chat)
        items = [{"kind": "compacted", "content": "We spoke."}, {"kind": "assistant", "content": "I said so."}]
        watcher = await place.watch(chat)
        await watcher.pinged()
        before = list(watcher.events)
        reply = await place.post(chat, "restore", {"orchestrator_context": items}, version=version)
        assert (reply.status, reply.json) == (200, {"status": "restored", "turn_id": None})
        await place.reopen()
        watcher = await place.watch(chat)
        await watcher.pinged()
        assert watcher.events == before and await title(place, chat) == named
        assert await talk(place, chat, "x") == "Answer 2."

    play(ECHO, work)


@requirement("T-RST-1")
def test_a_restore_refuses_what_is_no_context_and_a_busy_chat() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        good = {"kind": "compacted", "content": "x"}
        said = {"kind": "assistant", "content": "x"}
        for wrong in ([], [said], [good, good], [good, said, good], [{"kind": "user", "content": "x"}]):
            reply = await place.post(chat, "restore", {"orchestrator_context": wrong})
            assert (reply.status, reply.json["error"]["code"]) == (422, "invalid_orchestrator_context")
        for wrong in ({}, {"orchestrator_context": "x"}, {"orchestrator_context": [{"kind": "compacted"}]}):
            assert (await place.post(chat, "restore", wrong)).status == 422
        await place.say(chat, "slow")
        reply = await place.post(chat, "restore", {"orchestrator_context": [good]})
        assert (reply.status, reply.json["error"]["code"]) == (409, "turn_in_progress")

    play(ECHO, work)


@requirement("T-TTL-1")
@pytest.mark.parametrize(
    ("script", "message", "expected"),
    [
        ([{"say": [{"text": "«A fine title»"}]}], "x", "A fine title"),
        (
            [{"when": {"nth": 1, "tool_offered": "list"}, "say": [{"text": "ok"}]}, {"say": [{"error": "failed"}]}],
            "a\n b" + "c" * 99,
            "a b" + "c" * 77,
        ),
        ([{"when": {"tool_offered": "list"}, "say": [{"text": "ok"}]}, {"say": [{"text": " "}]}], "\x01\x02", "Chat"),
        (
            [
                {"when": {"tool_offered": "list"}, "say": [{"text": "ok"}]},
                {"say": [{"delay_ms": 30_000}, {"text": "x"}]},
            ],
            "slow one",
            "slow one",
        ),
    ],
)
def test_a_new_chat_is_named_before_the_first_text(script: Any, message: str, expected: str) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        await place.say(chat, message)
        named = await watcher.until("chat.title.updated")
        assert await title(place, chat) == expected  # stored before it is announced
        assert named["agent"] is None and named["data"] == {"title": expected}
        await watcher.end()
        assert watcher.types.index("chat.title.updated") < watcher.types.index("agent.text.delta")
        assert watcher.types.count("chat.title.updated") == 1

    play({"main": script}, work, agents=TOOLS)


@requirement("T-TTL-1")
def test_an_agent_can_name_the_chat_and_an_unchanged_name_is_no_event() -> None:
    rename = {"tool": "set_chat_title", "arguments": {"title": " New\nname "}}
    script = [{"when": {"after_tool": True}, "say": [{"text": "{tool_result}"}]}, {"say": [rename]}]

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        for _ in range(2):
            await watcher.end(await place.say(chat, "name it"))
        titles = [event["data"]["title"] for event in watcher.all("chat.title.updated")]
        assert titles[-1] == "New name" and titles.count("New name") == 1
        assert await title(place, chat) == "New name"
        results = [event["data"]["result"]["changed"] for event in watcher.all("agent.tool.complete")]
        assert results == [True, False]

    play({"main": script}, work, agents=TOOLS)


@requirement("T-CMP-1")
def test_a_context_near_the_window_is_summarised_and_the_summary_paid_for() -> None:
    script = [
        {
            "when": {"contains": "about to be replaced"},
            "say": [{"text": "SUMMARY"}, {"usage": {"input_tokens": 7, "output_tokens": 5}}],
        },
        {"when": {"contains": "What happened"}, "say": [{"text": "from {last_user}"}]},
        {"when": {"nth": 1}, "say": [{"text": "long"}, {"usage": {"input_tokens": 900, "output_tokens": 50}}]},
        {"say": [{"text": "other"}]},
    ]

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        await watcher.end(await place.say(chat, "first"))
        turn = await place.say(chat, "second")
        end = await watcher.end(turn)
        compacting = watcher.all("agent.context.compacting")[0]["data"]
        assert compacting["window_tokens"] == 1000 and compacting["context_tokens"] >= compacting["threshold_tokens"]
        compacted = watcher.all("agent.context.compacted")[0]
        assert compacted["data"]["new_context"] == "SUMMARY"
        assert "SUMMARY" in watcher.all("agent.text.done")[-1]["data"]["text"]
        assert "second" in watcher.all("agent.text.done")[-1]["data"]["text"]
        assert end["data"]["usage"]["output_tokens"] > 5
        check_order(type(watcher)(3, [event for event in watcher.events if event["turn_id"] == turn]))

    play({"main": script}, work, window=1000)


@requirement("T-EVT-4")
@pytest.mark.parametrize("version", [2, 3])
def test_a_file_that_an_agent_writes_is_told_of(version: int) -> None:
    files = {"report.md": "# Tèa\n", "/data/rows.csv": "a,b\n", "../x.md": "no"}
    say = [{"tool": "write", "arguments": {"path": path, "content": content}} for path, content in files.items()]
    script = [{"when": {"after_tool": True}, "say": [{"text": "done"}]}, {"say": say}]

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat, version=version)
        await place.say(chat, "write", version=version)
        await watcher.end()
        told = {event["data"].pop("artifact_id"): event["data"] for event in watcher.all("agent.artifact")}
        assert len(told) == 2
        assert sorted(told.values(), key=lambda made: str(made["name"])) == [
            {"name": "/data/rows.csv", "media_type": "text/csv", "size": 4},
            {"name": "/report.md", "media_type": "text/markdown", "size": 7},
        ]
        path = f"/api/v1/workspaces/{place.made.workspace_id}/files/download?path=/report.md"
        assert (await place.call("GET", path)).raw == files["report.md"].encode()
        assert [event["data"]["is_error"] for event in watcher.all("agent.tool.complete")].count(True) == 1

    play({"main": script}, work, agents={"main": {"tools_enabled": tool("write")}})


@requirement("T-KNO-1")
def test_agents_read_search_and_where_allowed_write_what_the_workspace_knows() -> None:
    def use(name: str, **arguments: str) -> dict[str, Any]:
        return {"tool": name, "arguments": arguments}

    say = [
        use("wiki_write", path="tea.md", content="Tea is hot.\nIndeed."),
        use("wiki_read", path="/wiki/tea.md"),
        use("wiki_ls"),
        use("wiki_search", words="HOT"),
        use("skill_write", path="brew.md", content="x"),
        use("skill_list"),
        use("memory_write", content="The user likes tea."),
        use("memory_read"),
        use("wiki_read", path="../../crocevia.db"),
        use("wiki_read", path="none.md"),
        use("wiki_read"),
        use("wiki_write", path="big.md", content="x\n" * 1001),
        use("write", path="/MEMORY.md", content="y" * 12_001),
        use("exec", command="rm"),
    ]
    script = [
        {"when": {"after_tool": True}, "say": [{"text": "done"}]},
        {"when": {"contains": "again"}, "say": [{"text": "x"}]},
        {"say": say},
    ]
    names = (
        "wiki_write",
        "wiki_read",
        "wiki_ls",
        "wiki_search",
        "skill_write",
        "skill_list",
        "memory_write",
        "memory_read",
        "write",
    )
    agents = {"main": {"tools_enabled": tool(*names), "can_write_knowledge": True, "config": {"parallel_tools": 1}}}

    async def work(place: Theatre) -> None:
        watcher = await place.play("learn")
        starts = {event["data"]["call_id"]: event["data"] for event in watcher.all("agent.tool.start")}
        results = [(starts[e["data"]["call_id"]]["tool_name"], e["data"]) for e in watcher.all("agent.tool.complete")]
        found = {(name, str(starts[data["call_id"]]["args"].get("path"))): data for name, data in results}
        assert found["wiki_read", "/wiki/tea.md"]["result"] == "Tea is hot.\nIndeed."
        assert found["wiki_ls", "None"]["result"][0]["name"] == "tea.md"
        assert found["wiki_search", "None"]["result"] == [{"path": "/wiki/tea.md", "line": "Tea is hot."}]
        assert found["memory_read", "None"]["result"] == "The user likes tea."
        assert found["skill_list", "None"]["result"] == []
        failed = [key for key, data in found.items() if data["is_error"]]
        assert failed == [
            ("skill_write", "brew.md"),  # it may write knowledge, not skills
            ("wiki_read", "../../crocevia.db"),
            ("wiki_read", "none.md"),
            ("wiki_read", "None"),
            ("wiki_write", "big.md"),
            ("write", "/MEMORY.md"),
            ("exec", "None"),
        ] or set(failed) >= {("skill_write", "brew.md"), ("exec", "None"), ("wiki_read", "none.md")}
        assert len(failed) == 7
        kinds = {data["tool_name"]: data["kind"] for data in starts.values()}
        assert (kinds["wiki_read"], kinds["write"]) == ("knowledge", "server")
        memory = place.home.files / place.made.workspace_id / "MEMORY.md"
        assert memory.read_text() == "The user likes tea."
        assert json.dumps(watcher.events).count("crocevia.db") == 1  # only in the arguments that the model wrote

    play({"main": script}, work, agents=agents)
