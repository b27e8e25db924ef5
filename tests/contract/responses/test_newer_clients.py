"""Items and tools of newer clients: carried, mapped, or left out with a note; never the end of a conversation."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crocevia.storage.home import Home
from crocevia.storage.records import notes_of
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import text_of
from tests.fakes.provider import Play, play

from .upstream import DONE, calls, chunk, sent, upstream, whole

PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}
SHELL = {"type": "function", "name": "exec", "parameters": {"type": "object", "properties": {}}}
SPACE = {"type": "namespace", "name": "multi_agent_v1", "description": "Agents.", "tools": [SHELL]}
USER = {"type": "message", "id": "msg_1", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
TEXT = '*** Begin Patch\n"a"\n*** End Patch'

# Kinds of items that no model can be given, in the shapes in which clients send them.
LEFT_OUT: list[dict[str, Any]] = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [{"name": "t", "input_schema": {}}]},
    {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "t", "arguments": "{}", "output": "x"},
    {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "t", "arguments": "{}"},
    {"type": "file_search_call", "id": "fs_1", "queries": ["x"], "results": None, "status": "completed"},
    {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": [], "container_id": "c"},
    {"type": "computer_call", "id": "cu_1", "call_id": "c9", "action": {"type": "click"}, "status": "completed"},
    {"type": "computer_call_output", "call_id": "c9", "output": {"type": "computer_screenshot"}},
    {"type": "tool_search_call", "call_id": "c8", "execution": "client", "arguments": {"query": "x"}},
    {"type": "tool_search_output", "call_id": "c8", "status": "completed", "execution": "client", "tools": []},
    {"type": "shell_call", "call_id": "c7", "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "call_id": "c7", "output": [{"stdout": "", "outcome": {"type": "exit"}}]},
    {"type": "local_shell_call", "call_id": "c6", "status": "completed", "action": {"type": "exec", "command": []}},
    {"type": "ghost_snapshot", "ghost_commit": {"id": "x"}},
    {"type": "acme:thing", "content": 5, "name": [1], "role": {}, "output": {"deep": [[]]}},
    {"type": "\u2028odd kind", "summary": 3},
]


def repaired(folder: Path) -> list[str]:
    """What the records of the home say was left out or mended."""
    with closing(sqlite3.connect(Home(folder / "home").database)) as database:
        found = database.execute("SELECT notes FROM call_records WHERE notes IS NOT NULL").fetchall()
    return [line for (text,) in found for line in notes_of(text).get("repaired", [])]


@requirement("R-ITEM-7")
def test_an_item_of_another_kind_is_left_out_and_noted(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            for item in LEFT_OUT:
                first = await home.respond([USER, item], model="Pepper mini")
                assert text_of(first) == "hello", item
                assert [one["content"] for one in sent(provider)["messages"]][-1:] == ["hi"], item
                # What is kept of the conversation is met again.
                await home.respond("more", model="Pepper mini", previous_response_id=first["id"])
                told = [one["content"] for one in sent(provider)["messages"] if one["role"] != "system"]
                assert told == ["hi", "hello", "more"], item
            assert text_of(await home.respond([USER, *LEFT_OUT], model="openclaw")) == "hello"

    run(scene(), timeout=100)
    kinds = [item["type"] if item["type"].isascii() else "?" for item in LEFT_OUT]
    notes = repaired(tmp_path)
    assert {f"input[1]: {kind}" for kind in kinds} <= set(notes)
    assert {f"previous[1]: {kind}" for kind in kinds} <= set(notes)
    assert "input[3]: mcp_list_tools" in notes  # of a run, too


@requirement("R-REQ-8")
def test_what_is_known_must_still_have_its_shape(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path) as (home, _):
            odd = [{"type": "acme:thing", "content": 5}, {"type": "function_call", "call_id": "c", "name": 5}]
            answer = await home.ask("/v1/responses", {"model": "openclaw", "input": [USER, *odd]})
            assert (answer.status, answer.error["param"]) == (400, "input[2].name")

    run(scene())


@requirement("R-ITEM-7")
def test_a_local_shell_call_with_its_result_is_a_call_with_its_result(tmp_path: Path) -> None:
    action = {"type": "exec", "command": ["ls"]}
    shell = {"type": "local_shell_call", "id": "ls_1", "call_id": "c1", "status": "completed", "action": action}

    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            for output in (
                {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
                {"type": "local_shell_call_output", "id": "c1", "output": "a.txt"},
            ):
                await home.respond([USER, shell, output])
                call, result = sent(provider)["messages"][-2:]
                assert call["tool_calls"][0]["function"]["name"] == "local_shell"
                assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == action
                assert (result["role"], result["content"]) == ("tool", "a.txt")

    run(scene())


def spelled(name: str, arguments: str) -> Play:
    """A call whose arguments come in small pieces."""
    begun = {"index": 0, "id": "up_1", "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": 0, "function": {"arguments": arguments[at : at + 3]}} for at in range(0, len(arguments), 3)]
    return play(*(chunk({"tool_calls": [one]}) for one in (begun, *rest)), chunk({}, "tool_calls"), DONE)


@requirement("R-REQ-15")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["openclaw", "Pepper mini"])
def test_a_free_form_tool_is_a_function_of_one_text_and_comes_back_as_its_caller_knows_it(
    stream: bool, model: str, tmp_path: Path
) -> None:
    arguments = json.dumps({"input": TEXT})
    first = (
        spelled("apply_patch", arguments) if stream else whole("", tool_calls=calls(("up_1", "apply_patch", arguments)))
    )

    async def scene() -> None:
        async with upstream(tmp_path, first, whole()) as (home, provider):
            body = {"model": model, "input": [USER], "tools": [PATCH], "stream": stream}
            answer = await home.ask("/v1/responses", body)
            (offered,) = sent(provider)["tools"]
            assert "start: /.+/" in offered["function"]["description"]
            assert list(offered["function"]["parameters"]["properties"]) == ["input"]
            told = answer.events() if stream else []
            resource = told[-1]["response"] if stream else answer.json()
            (item,) = resource["output"]
            assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", TEXT)
            assert "arguments" not in item and item["id"].startswith("ctc_")
            if stream:
                kinds = [event["type"] for event in told]
                assert not any("function_call" in kind for kind in kinds)
                texts = [event["delta"] for event in told if event["type"] == "response.custom_tool_call_input.delta"]
                assert "".join(texts) == TEXT
                done = next(one for one in told if one["type"] == "response.custom_tool_call_input.done")
                assert (done["input"], done["item_id"]) == (TEXT, item["id"])
            again = (await home.get(f"/v1/responses/{resource['id']}?stream=true")).events()
            assert [one["item"] for one in again if one["type"] == "response.output_item.done"] == [item]
            result = {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "done"}
            for following in (
                {"input": [USER, item, result]},
                {"input": [result], "previous_response_id": resource["id"]},
            ):
                await home.ask("/v1/responses", {"model": model, "tools": [PATCH], **following})
                call, output = sent(provider)["messages"][-2:]
                assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == {"input": TEXT}
                assert (output["tool_call_id"], output["content"]) == (call["tool_calls"][0]["id"], "done")

    run(scene())


@requirement("R-REQ-15")
@pytest.mark.parametrize("stream", [False, True])
def test_chat_completions_take_free_form_tools_too(stream: bool, tmp_path: Path) -> None:
    grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}
    tool = {"type": "custom", "custom": {"name": "free", "description": "x", "format": grammar}}
    arguments = json.dumps({"input": TEXT})
    first = spelled("free", arguments) if stream else whole("", tool_calls=calls(("up_1", "free", arguments)))

    async def scene() -> None:
        async with upstream(tmp_path, first, whole()) as (home, provider):
            choice = {"type": "custom", "custom": {"name": "free"}}
            messages: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
            body = {"model": "openclaw", "messages": messages, "tools": [tool], "tool_choice": choice}
            answer = await home.ask("/v1/chat/completions", {**body, "stream": stream})
            asked = sent(provider)
            assert "a+" in asked["tools"][0]["function"]["description"]
            assert asked["tool_choice"] == {"type": "function", "function": {"name": "free"}}
            if stream:
                frames = [line for line in answer.body.decode().split("\n\n") if line.startswith("data: {")]
                deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in frames]
                pieces = [one for delta in deltas for one in delta.get("tool_calls", [])]
                assert all(piece["index"] == 0 and "function" not in piece for piece in pieces)
                call = {"id": pieces[0]["id"], "type": pieces[0]["type"]}
                call["custom"] = {
                    "name": "free",
                    "input": "".join(piece["custom"].get("input", "") for piece in pieces),
                }
            else:
                (call,) = answer.json()["choices"][0]["message"]["tool_calls"]
            assert (call["type"], call["custom"]) == ("custom", {"name": "free", "input": TEXT})
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": "done"},
            ]
            assert (await home.ask("/v1/chat/completions", {**body, "tool_choice": "auto"})).status == 200
            back = sent(provider)["messages"][-2]["tool_calls"][0]["function"]
            assert json.loads(back["arguments"]) == {"input": TEXT}

    run(scene())


@requirement("R-REQ-15")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_tools_of_a_namespace_and_tools_among_the_items_can_be_called(
    stream: bool, inside: bool, tmp_path: Path
) -> None:
    name = "multi_agent_v1__exec"
    first = spelled(name, "{}") if stream else whole("", tool_calls=calls(("up_1", name, "{}")))
    more = {"type": "additional_tools", "role": "developer", "tools": [SPACE, SHELL]}
    asked: dict[str, Any] = {
        "input": [more, USER] if inside else [USER],
        "tools": [SHELL] if inside else [SPACE, SHELL],
    }

    async def scene() -> None:
        async with upstream(tmp_path, first, whole()) as (home, provider):
            answer = await home.ask("/v1/responses", {"model": "openclaw", **asked, "stream": stream})
            assert {one["function"]["name"] for one in sent(provider)["tools"]} == {name, "exec"}
            resource = answer.events()[-1]["response"] if stream else answer.json()
            (item,) = resource["output"]
            assert (item["type"], item["name"], item["namespace"]) == ("function_call", "exec", "multi_agent_v1")
            result = {"type": "function_call_output", "call_id": item["call_id"], "output": "x"}
            await home.respond([*asked["input"], item, result], tools=asked["tools"])
            assert sent(provider)["messages"][-2]["tool_calls"][0]["function"]["name"] == name

    run(scene())


@requirement("R-REQ-3")
def test_tools_that_nobody_here_could_run_are_noted(tmp_path: Path) -> None:
    hosted = [{"type": "web_search", "external_web_access": True}, {"type": "image_generation", "format": "png"}]

    async def scene() -> None:
        async with upstream(tmp_path) as (home, provider):
            await home.respond("hi", tools=[SHELL, *hosted])
            assert len(sent(provider)["tools"]) == 1

    run(scene())
    assert repaired(tmp_path) == ["tools[1]: web_search", "tools[2]: image_generation"]


@requirement("R-ITEM-4", "R-REF-1")
def test_a_second_result_of_a_call_is_named_and_a_reference_into_the_conversation_is_ignored(tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "exec", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "one"}

    async def scene() -> None:
        async with upstream(tmp_path, whole("", tool_calls=calls(("c1", "exec", "{}"))), whole()) as (home, provider):
            twice = [USER, call, result, {**result, "output": "two"}]
            answer = await home.ask("/v1/responses", {"model": "openclaw", "input": twice})
            assert (answer.status, answer.error["param"]) == (400, "input[3]")
            assert "c1" in answer.error["message"] and provider.requests == []
            reused = [USER, call, result, call, {**result, "output": "two"}]  # another call of the same id
            first = await home.respond([USER], tools=[SHELL])
            (asked,) = first["output"]
            again = {"type": "item_reference", "id": asked["id"]}
            back = {**result, "call_id": asked["call_id"]}
            await home.respond([again, back], tools=[SHELL], previous_response_id=first["id"])
            assert [one["role"] for one in sent(provider)["messages"][-3:]] == ["user", "assistant", "tool"]
            await home.respond(reused, tools=[SHELL])
            assert [one["content"] for one in sent(provider)["messages"] if one["role"] == "tool"] == ["one", "two"]

    run(scene())
