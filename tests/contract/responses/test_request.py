"""What a request may say, and what of it reaches the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import ENABLED, House, house, text_of
from tests.fakes.provider import Provider, answer

from .schema import check, check_resource, contract
from .upstream import calls, sent, upstream, whole

TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}
OTHER = {"type": "function", "name": "other"}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SYSTEM = "You are a helpful assistant."
ALL = ENABLED + "[gateway.http.endpoints.chatCompletions]\nenabled = true\n"


def asked(folder: Path, **fields: Any) -> dict[str, Any]:
    """What reaches the provider for a request with these fields."""

    async def scene() -> dict[str, Any]:
        async with upstream(folder) as (home, provider):
            await home.respond(**{"input": "hi", **fields})
            return sent(provider)

    return run(scene())


def refused(folder: Path, **fields: Any) -> dict[str, Any]:
    async def scene() -> dict[str, Any]:
        async with house(folder) as home:
            answer = await home.ask("/v1/responses", {"model": "openclaw", "input": "hi", **fields})
            assert answer.status == 400, answer.body
            return answer.error

    return run(scene())


@requirement("R-OFF-1")
def test_without_the_setting_there_is_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, settings="") as home:
            for path in ("/v1/responses", "/v1/chat/completions", "/v1/embeddings", "/v1/models"):
                assert (await home.ask(path, {})).status == 404

    run(scene())


@requirement("R-REQ-1", "R-ITEM-2")
@pytest.mark.parametrize(
    "given",
    [
        "hi",
        [{"role": "user", "content": "hi"}],
        [{"type": "message", "role": "user", "content": "hi"}],
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        [{"role": "user", "content": [{"type": "text", "text": "h"}, {"type": "input_text", "text": "i"}]}],
    ],
)
def test_every_way_to_say_hi_says_hi(given: Any, tmp_path: Path) -> None:
    body = asked(tmp_path, input=given)
    said = body["messages"][-1]
    text = said["content"] if isinstance(said["content"], str) else "".join(p["text"] for p in said["content"])
    assert (said["role"], text) == ("user", "hi")


@requirement("R-REQ-2", "R-ITEM-1")
def test_instructions_and_system_items_join_in_order_and_the_rest_keeps_its_place(tmp_path: Path) -> None:
    items = [
        {"role": "system", "content": "one"},
        {"role": "user", "content": "a"},
        {"role": "developer", "content": [{"type": "input_text", "text": "two"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "b", "annotations": [], "logprobs": []}]},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "d"},
    ]
    body = asked(tmp_path, input=items, instructions="zero")
    assert [(one["role"], one["content"]) for one in body["messages"]] == [
        ("system", f"{SYSTEM}\n\nzero\n\none\n\ntwo"),
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
        ("assistant", "d"),
    ]


@requirement("R-REQ-3")
def test_functions_and_those_of_namespaces_reach_the_model_and_hosted_tools_are_left_out(tmp_path: Path) -> None:
    hosted = [{"type": "web_search"}, {"type": "namespace", "name": "mcp", "tools": [OTHER]}]
    body = asked(tmp_path, tools=[TOOL, *hosted, OTHER])
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look", "mcp__other", "other"]
    assert body["tools"][0]["function"]["parameters"] == TOOL["parameters"]


@requirement("R-REQ-4", "R-REQ-5", "R-REQ-9")
def test_limits_and_sampling_reach_the_model(tmp_path: Path) -> None:
    body = asked(tmp_path, max_output_tokens=77, temperature=0.3, top_p=0.8, parallel_tool_calls=False, tools=[TOOL])
    assert (body["max_tokens"], body["temperature"], body["top_p"]) == (77, 0.3, 0.8)
    assert body["parallel_tool_calls"] is False


BODY = {"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn", "usage": {}}
RANGES: dict[str, tuple[dict[str, Any], str, bytes]] = {
    "anthropic": (
        {"temperature": 1.0, "stop_sequences": ["x"]},
        "",
        json.dumps(BODY).encode(),
    ),
    "openai-chat": (
        {"temperature": 1.2, "stop": ["\n", " ", "x"]},
        "/v1",
        json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}).encode(),
    ),
}


@requirement("R-REQ-5")
@pytest.mark.parametrize("kind", RANGES)
def test_what_is_outside_of_an_engine_s_range_is_brought_into_it(kind: str, tmp_path: Path) -> None:
    expected, base, body = RANGES[kind]

    async def scene() -> None:
        async with Provider(answer(200, body)) as provider:
            engine = {"kind": kind, "base_url": f"{provider.url}{base}", "api_key": "sk-12345678"}
            async with house(tmp_path, settings=ALL, engine=engine, model={"upstream": "claude-haiku-4-5"}) as home:
                await home.respond("hi", temperature=1.2)
                assert sent(provider)["temperature"] == expected["temperature"]
                said = {"model": "openclaw", "messages": [{"role": "user", "content": "hi"}]}
                sampling = {"temperature": 1.2, "stop": ["\n", " ", "x"]}
                assert (await home.ask("/v1/chat/completions", said | sampling)).status == 200
                asked = sent(provider)
                assert {name: asked[name] for name in expected} == expected

    run(scene())


FIELDS: dict[str, Any] = {
    "instructions": "be brief",
    "include": ["reasoning.encrypted_content"],
    "tools": [TOOL],
    "tool_choice": "auto",
    "metadata": {"a": "b"},
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "temperature": 0.5,
    "top_p": 0.5,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "parallel_tool_calls": False,
    "stream": False,
    "stream_options": {"include_obfuscation": False},
    "background": False,
    "max_output_tokens": 100,
    "max_tool_calls": 3,
    "reasoning": {"effort": "low", "summary": "auto"},
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "truncation": "auto",
    "store": False,
    "service_tier": "default",
    "top_logprobs": 0,
    "previous_response_id": None,
}
REPEATED = {
    "instructions",
    "metadata",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "parallel_tool_calls",
    "background",
    "max_output_tokens",
    "max_tool_calls",
    "reasoning",
    "safety_identifier",
    "prompt_cache_key",
    "truncation",
    "store",
    "service_tier",
    "top_logprobs",
    "tool_choice",
}


@requirement("R-REQ-6", "R-RES-1")
def test_every_field_of_the_contract_is_taken_and_repeated(tmp_path: Path) -> None:
    known = set(contract()["components"]["schemas"]["CreateResponseBody"]["properties"])
    assert known == {*FIELDS, "model", "input"}  # none is left out here when the contract grows

    async def scene() -> None:
        async with house(tmp_path) as home:
            for name, value in FIELDS.items():
                body = {"model": "openclaw", "input": "hi", name: value}
                check("CreateResponseBody", body)
                answer = await home.respond("hi", **{name: value})
                check_resource(answer)
                if name in REPEATED:
                    assert answer[name] == value, name
            answer = await home.respond("hi", **FIELDS)
            check_resource(answer)
            assert answer["tools"] == [{**TOOL, "description": None, "strict": None}]
            assert answer["text"] == FIELDS["text"]

    run(scene())


@requirement("R-REQ-6")
def test_null_stands_for_absent_everywhere(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            answer = await home.respond("hi", **dict.fromkeys(FIELDS))
            bare = await home.respond("hi")
            changing = ("id", "created_at", "completed_at", "output")
            assert {k: v for k, v in answer.items() if k not in changing} == {
                k: v for k, v in bare.items() if k not in changing
            }

    run(scene())


@requirement("R-REQ-7")
def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    body = asked(tmp_path, client_metadata={"x": 1}, prompt=None, conversation=None, foo="bar")
    assert "foo" not in body and "client_metadata" not in body


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"input": 3}, "input"),
    ({"input": [{"role": "user", "content": [{"type": "input_text", "text": 5}]}]}, "input[0].content[0].text"),
    ({"input": [{"role": "user", "content": [{"type": "nonsense"}]}]}, "input[0].content[0].type"),
    ({"input": [{"type": "nonsense"}]}, "input"),  # an item that nobody knows is left out, and nothing is left
    ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
    ({"input": []}, "input"),
    ({"input": ""}, "input"),
    ({"input": None}, "input"),
    ({"tools": [{"type": "function", "name": ""}]}, "tools[0].name"),
    ({"tools": [{"type": "function", "name": "n" * 257}]}, "tools[0].name"),
    ({"tools": [TOOL, TOOL]}, "tools[1].name"),
    ({"tools": [{"type": "function", "name": "a", "parameters": []}]}, "tools[0].parameters"),
    ({"temperature": 3}, "temperature"),
    ({"top_p": -1}, "top_p"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"max_tool_calls": 0}, "max_tool_calls"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"truncation": "maybe"}, "truncation"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format.name"),
    ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
    ({"text": {"format": {"type": "json_schema", "name": "x", "schema": []}}}, "text.format.schema"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ({"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
    ({"metadata": {"k": "v" * 513}}, "metadata"),
    ({"background": True, "store": False}, "background"),
    ({"model": None}, "model"),
]


@requirement("R-REQ-8", "R-REQ-12")
def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            for fields, param in WRONG:
                answer = await home.ask("/v1/responses", {"model": "openclaw", "input": "hi", **fields})
                assert (answer.status, answer.error["param"]) == (400, param), (fields, answer.body)
                assert answer.error["type"] == "invalid_request_error" and answer.error["message"]
            for raw in (b"{", b"[]", b'{"input": "\xff"}', b"\x00", b"[" * 5000):
                answer = await home.ask("/v1/responses", raw=raw)
                assert answer.status == 400, raw[:20]

    run(scene())


@requirement("R-REQ-10")
def test_a_schema_reaches_the_model_and_comes_back(tmp_path: Path) -> None:
    form = {"type": "json_schema", "name": "out", "schema": SCHEMA, "strict": True}

    async def scene() -> None:
        async with upstream(tmp_path, whole('{"n": 1}')) as (home, provider):
            answer = await home.respond("hi", text={"format": form})
            assert sent(provider)["response_format"] == {
                "type": "json_schema",
                "json_schema": {"name": "out", "schema": SCHEMA, "strict": True},
            }
            assert answer["text"]["format"] == {**form, "description": None}
            check_resource(answer)

    run(scene())


@requirement("R-REQ-10")
def test_a_form_that_the_engine_has_no_way_for_is_refused_by_name(tmp_path: Path) -> None:
    async def scene() -> None:
        engine = {"kind": "anthropic", "base_url": "http://127.0.0.1:9"}
        async with house(tmp_path, engine=engine, model={"upstream": "claude-opus-5-5"}) as home:
            body = {"model": "openclaw", "input": "hi", "text": {"format": {"type": "json_object"}}}
            answer = await home.ask("/v1/responses", body)
            assert (answer.status, answer.error["param"]) == (400, "text.format")
            assert answer.error["code"] == "unsupported_parameter"

    run(scene())


@requirement("R-REQ-11")
def test_the_oldest_rounds_go_only_when_that_was_asked_for_and_else_too_much_is_refused(tmp_path: Path) -> None:
    old, new = "x" * 4000, "new"
    items = [{"role": "user", "content": old}, {"role": "assistant", "content": old}, {"role": "user", "content": new}]

    async def scene() -> None:
        async with upstream(tmp_path, declared=SMALL) as (home, provider):
            for truncation in ({"truncation": "disabled"}, {}):
                refused = await home.ask("/v1/responses", {"model": "Small", "input": items, **truncation})
                assert (refused.status, refused.error["code"]) == (400, "context_length_exceeded")
                assert provider.requests == []
            await home.respond(items, model="Small", truncation="auto")
            assert len([m for m in sent(provider)["messages"] if m["role"] != "system"]) == 1
            await home.respond(items[2:], model="Small")

    run(scene())


SMALL = '\n[[models]]\nname = "Small"\nengine = "embedded"\nupstream = "up-1"\ncontext_window = 1000\n'

LOOP: list[dict[str, Any]] = [
    {"role": "user", "content": "weather?"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "?"},
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "look",
        "arguments": '{"q": 1}',
        "status": "completed",
    },
    {"type": "function_call", "call_id": "c2", "name": "look", "arguments": ""},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
    {"type": "function_call_output", "call_id": "c1", "output": "one"},
    {"type": "item_reference", "id": "msg_1"},
]


@requirement("R-ITEM-3", "R-ITEM-5")
def test_calls_and_results_are_calls_and_results(tmp_path: Path) -> None:
    body = asked(tmp_path, input=LOOP, tools=[TOOL])
    messages = body["messages"][1:]
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "tool"]
    assert [call["function"]["arguments"] for call in messages[1]["tool_calls"]] == ['{"q": 1}', "{}"]
    assert [(one["tool_call_id"], one["content"]) for one in messages[2:]] == [("c1", "one"), ("c2", "two")]


@requirement("R-ITEM-4")
def test_calls_without_results_and_results_without_calls_are_named(tmp_path: Path) -> None:
    without = refused(tmp_path, input=LOOP[:5])
    assert "No tool output found for function call c1" in without["message"]
    stray = refused(tmp_path / "b", input=[LOOP[0], LOOP[5]])
    assert stray["param"] == "input[1]" and "c1" in stray["message"]


@requirement("R-CHOICE-1")
@pytest.mark.parametrize(
    ("choice", "spelled"),
    [
        ("none", "none"),
        ({"type": "function", "name": "look"}, {"type": "function", "function": {"name": "look"}}),
        ({"type": "function", "function": {"name": "look"}}, {"type": "function", "function": {"name": "look"}}),
        ("auto", None),
    ],
)
def test_a_choice_is_the_model_s_own(choice: Any, spelled: Any, tmp_path: Path) -> None:
    async def scene() -> None:
        called = {"tool_calls": calls(("c1", "look", "{}"))} if spelled and spelled != "none" else {}
        async with upstream(tmp_path, whole("", **called) if called else whole()) as (home, provider):
            await home.respond("hi", tools=[TOOL, OTHER], tool_choice=choice)
            assert sent(provider).get("tool_choice") == spelled

    run(scene())


@requirement("R-CHOICE-2")
def test_tools_that_are_not_allowed_cannot_be_called(tmp_path: Path) -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]}

    async def scene() -> None:
        stray = whole("", tool_calls=calls(("c1", "other", "{}")))
        async with upstream(tmp_path, whole(), stray) as (home, provider):
            answer = await home.respond("hi", tools=[TOOL, OTHER], tool_choice=choice)
            assert answer["tool_choice"] == choice and len(answer["tools"]) == 2
            assert [tool["function"]["name"] for tool in sent(provider)["tools"]] == ["look"]
            check_resource(answer)
            body = {"model": "openclaw", "input": "hi", "tools": [TOOL, OTHER], "tool_choice": choice}
            failed = await home.ask("/v1/responses", body)
            assert (failed.status, failed.error["type"]) == (502, "api_error")

    run(scene())


@requirement("R-CHOICE-3")
def test_a_choice_that_the_model_did_not_keep_to_is_a_failure(tmp_path: Path) -> None:
    async def scene(home: House) -> None:
        for choice in ("required", {"type": "function", "name": "look"}):
            body = {"model": "openclaw", "input": "nothing", "tools": [TOOL], "tool_choice": choice}
            failed = await home.ask("/v1/responses", body)
            assert (failed.status, failed.error["type"]) == (502, "api_error"), failed.body
            streamed = await home.ask("/v1/responses", {**body, "stream": True})
            assert [event["type"] for event in streamed.events()[-2:]] == ["error", "response.failed"]
            assert streamed.events()[-1]["response"]["error"]["code"] == "tool_choice_unmet"
            chat = {
                "model": "openclaw",
                "messages": [{"role": "user", "content": "nothing"}],
                "tools": [{"type": "function", "function": {"name": "look"}}],
                "tool_choice": "required",
            }
            assert (await home.ask("/v1/chat/completions", chat)).status == 502

    async def within() -> None:
        async with house(tmp_path, script=[{"say": [{"text": "no"}]}]) as home:
            await scene(home)

    run(within())


@requirement("R-CHOICE-4")
def test_a_choice_that_cannot_be_kept_to_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            for choice in (
                "required",
                "sometimes",
                {"type": "function", "name": "nope"},
                {"type": "weird"},
                {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "nope"}]},
            ):
                body = {"model": "openclaw", "input": "hi", "tool_choice": choice}
                answer = await home.ask("/v1/responses", body)
                assert (answer.status, answer.error["param"]) == (400, "tool_choice"), choice

    run(scene())


@requirement("R-AGENT-4")
def test_models_answer_by_name_only_when_they_are_exposed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as home:
            assert text_of(await home.respond("hi", model="Pepper mini")) == "You said: hi"
        async with house(tmp_path / "b", settings=ENABLED.replace("exposeCatalog = true", "")) as home:
            answer = await home.ask("/v1/responses", {"model": "Pepper mini", "input": "hi"})
            assert answer.status == 400 and answer.error["code"] == "model_not_found"

    run(scene())
