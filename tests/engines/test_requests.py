"""What each dialect sends: snapshots, shapes that providers refuse, blocks that must go back untouched."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from crocevia.core.answers import fold
from crocevia.core.calls import Effort, ModelRequest, ReasoningMode
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.messages import (
    AssistantMessage,
    FilePart,
    Message,
    ProviderBlocks,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
    user,
)
from crocevia.engines.openai.chat import ChatDialect
from crocevia.engines.openai.responses import ResponsesDialect
from tests.engines.dialects import sent as sent_to
from tests.fakes.requests import model_request

from .dialects import BASES, KEY, dialect, streamed, transcript

KINDS = sorted(BASES)
WEATHER = Tool(
    name="get_weather",
    description="The weather.",
    parameters=Raw(b'{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}'),
)
TIME = Tool(name="get_time", description="", parameters=Raw(b"{}"))


def call(call_id: str, name: str = "get_weather", arguments: bytes = b'{"q": 2.10e1}') -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=Raw(arguments))


ROUND: tuple[Message, ...] = (
    user("Weather?"),
    AssistantMessage(text="Let me look.", tool_calls=(call("call_1"), call("call_2", "get_time", b"{}"))),
    ToolMessage(call_id="call_1", content="sunny"),
    ToolMessage(call_id="call_2", content="boom", is_error=True),
)


def request(*messages: Message, **changes: Any) -> ModelRequest:
    return model_request(**{"messages": messages or (user("hi"),), **changes})


def body(kind: str, asked: ModelRequest) -> Any:
    return json.loads(sent_to(dialect(kind), asked))


FULL = request(*ROUND, system="Be brief.", tools=(WEATHER, TIME), max_tokens=500)


def test_an_anthropic_request() -> None:
    mark = {"type": "ephemeral"}
    assert body("anthropic", msgspec.structs.replace(FULL, model="claude-opus-5-5")) == {
        "model": "claude-opus-5-5",
        "max_tokens": 500,
        "stream": True,
        "tools": [
            {
                "name": "get_weather",
                "description": "The weather.",
                "input_schema": json.loads(bytes(WEATHER.parameters)),
            },
            {
                "name": "get_time",
                "description": "",
                "input_schema": {"type": "object", "properties": {}},
                "cache_control": mark,
            },
        ],
        "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Weather?", "cache_control": mark}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"q": 21.0}},
                    {"type": "tool_use", "id": "call_2", "name": "get_time", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "content": "boom",
                        "is_error": True,
                        "cache_control": mark,
                    },
                ],
            },
        ],
    }


def test_a_chat_request() -> None:
    def function(name: str, arguments: str) -> dict[str, str]:
        return {"name": name, "arguments": arguments}

    assert body("openai-chat", FULL) == {
        "model": "m",
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get_weather",
                    "description": "The weather.",
                    "parameters": json.loads(bytes(WEATHER.parameters)),
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "get_time",
                    "description": "",
                    "parameters": {"type": "object", "properties": {}},
                },
            },
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": "Let me look.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": function("get_weather", '{"q": 2.10e1}')},
                    {"id": "call_2", "type": "function", "function": function("get_time", "{}")},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
            {"role": "tool", "tool_call_id": "call_2", "content": "Error: boom"},
        ],
        "max_tokens": 500,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_responses_request() -> None:
    assert body("openai-responses", FULL) == {
        "model": "m",
        "tools": [
            {
                "type": "function",
                "name": "get_weather",
                "description": "The weather.",
                "parameters": json.loads(bytes(WEATHER.parameters)),
                "strict": False,
            },
            {
                "type": "function",
                "name": "get_time",
                "description": "",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            },
        ],
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
            {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"q": 2.10e1}'},
            {"type": "function_call", "call_id": "call_2", "name": "get_time", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
            {"type": "function_call_output", "call_id": "call_2", "output": "Error: boom"},
        ],
        "max_output_tokens": 500,
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
    }


def test_openai_itself_gets_the_fields_that_other_servers_do_not_know() -> None:
    asked = request(session="s1", reasoning="on", stream=False)
    chat = json.loads(sent_to(ChatDialect("https://api.openai.com/v1", KEY), asked))
    assert (chat["max_completion_tokens"], chat["prompt_cache_key"], chat["reasoning_effort"]) == (4096, "s1", "medium")
    assert "max_tokens" not in chat
    assert "stream_options" not in chat
    assert json.loads(sent_to(ResponsesDialect("https://api.openai.com/v1", KEY), asked))["prompt_cache_key"] == "s1"
    for kind in ("openai-chat", "openai-responses"):
        assert "prompt_cache_key" not in body(kind, asked)


@pytest.mark.parametrize(
    ("model", "off", "on"),
    [
        ("claude-3-5-haiku-20241022", None, None),
        ("claude-3-haiku-20240307", None, None),
        ("claude-3-7-sonnet-20250219", None, "enabled"),
        ("claude-opus-4-20250514", None, "enabled"),
        ("claude-opus-4-1-20250805", None, "enabled"),
        ("claude-sonnet-4-5-20250929", None, "enabled"),
        ("claude-haiku-4-5", None, "enabled"),
        ("claude-opus-4-6", None, "adaptive"),
        ("claude-opus-4-8", None, "adaptive"),
        ("claude-sonnet-5", "disabled", "adaptive"),
        ("claude-opus-5", "disabled", "adaptive"),
        ("claude-opus-5-20260301", "disabled", "adaptive"),
        ("claude-haiku-5-5", "disabled", "adaptive"),
        ("claude-sonnet-5-5", "between_tools", "adaptive"),
        ("claude-opus-5-5", None, "adaptive"),
        ("claude-fable-5-2", None, "adaptive"),
        ("claude-mythos-5", None, "adaptive"),
        ("something-else", None, "adaptive"),
    ],
)
def test_each_claude_family_is_asked_to_think_in_the_form_it_takes(model: str, off: str | None, on: str | None) -> None:
    def thinking(reasoning: ReasoningMode) -> str | None:
        encoded = body("anthropic", request(model=model, reasoning=reasoning))
        kind = encoded.get("thinking", {}).get("type")
        assert kind is None or isinstance(kind, str)
        return kind

    assert (thinking("off"), thinking("on"), thinking("always")) == (off, on, on)


OFFICIAL = "https://api.openai.com/v1"
EFFORTS: tuple[Effort | None, ...] = (None, "none", "minimal", "low", "medium", "high", "xhigh")
# What each engine is told for each of EFFORTS, of a model that may reason and of one that always does.
TOLD: dict[str, dict[ReasoningMode, tuple[str | None, ...]]] = {
    "claude adaptive": {
        "off": (None,) * 7,
        "on": (None, None, "low", "low", "medium", "high", "high"),
        "always": (None, "low", "low", "low", "medium", "high", "high"),
    },
    "claude budget": {"off": (None,) * 7, "on": (None,) * 7, "always": (None,) * 7},
    "openai": {
        "off": (None,) * 7,
        "on": ("medium", None, "minimal", "low", "medium", "high", "xhigh"),
        "always": (None, "none", "minimal", "low", "medium", "high", "xhigh"),
    },
    "compatible": {
        "off": (None,) * 7,
        "on": ("medium", None, "low", "low", "medium", "high", "high"),
        "always": (None, "low", "low", "low", "medium", "high", "high"),
    },
}


def told(engine: str, reasoning: ReasoningMode, effort: Effort | None) -> str | None:
    """The effort that the engine sends."""
    model = {"claude adaptive": "claude-opus-5", "claude budget": "claude-sonnet-4-5"}.get(engine, "m")
    asked = request(model=model, reasoning=reasoning, effort=effort)
    if engine.startswith("claude"):
        found = body("anthropic", asked).get("output_config", {}).get("effort")
    elif engine == "openai":
        found = json.loads(sent_to(ChatDialect(OFFICIAL, KEY), asked)).get("reasoning_effort")
    else:
        found = body("openai-chat", asked).get("reasoning_effort")
    assert found is None or isinstance(found, str)
    return found


@pytest.mark.parametrize("reasoning", ["off", "on", "always"])
@pytest.mark.parametrize("engine", TOLD)
def test_an_effort_is_told_in_the_words_that_the_engine_knows(engine: str, reasoning: ReasoningMode) -> None:
    assert tuple(told(engine, reasoning, effort) for effort in EFFORTS) == TOLD[engine][reasoning]


def test_no_effort_turns_the_thinking_of_a_model_off_that_can_do_without() -> None:
    assert body("anthropic", request(model="claude-opus-5", reasoning="on", effort="none"))["thinking"] == {
        "type": "disabled"
    }
    assert "thinking" not in body("anthropic", request(model="claude-sonnet-4-5", reasoning="on", effort="none"))


def test_a_higher_effort_is_never_a_smaller_thinking_budget() -> None:
    def budget(effort: Effort) -> int:
        asked = request(model="claude-sonnet-4-5", reasoning="on", max_tokens=32_000, effort=effort)
        return int(body("anthropic", asked)["thinking"]["budget_tokens"])

    budgets = [budget(effort) for effort in EFFORTS if effort not in (None, "none")]
    assert budgets == sorted(budgets) and budgets[0] < budgets[-1]


@pytest.mark.parametrize("limit", [256, 1024, 1025, 4096, 32_000, 200_000])
def test_a_thinking_budget_fits_below_the_output_limit(limit: int) -> None:
    encoded = body("anthropic", request(model="claude-haiku-4-5", reasoning="on", max_tokens=limit))
    assert 1024 <= encoded["thinking"]["budget_tokens"] < encoded["max_tokens"]


def test_models_that_cannot_reason_are_not_asked_for_encrypted_reasoning() -> None:
    assert "include" not in body("openai-responses", request(model="gpt-4o"))
    assert body("openai-responses", request(model="gpt-5.5", reasoning="on"))["reasoning"]["effort"] == "medium"


def blocks_of(kind: str, name: str) -> bytes:
    """What a caller keeps of an answer: its blocks, joined as the array that will come back."""
    answer = fold(streamed(kind, [transcript(kind, name)]))
    return b"[" + b", ".join(bytes(block.block) for block in answer.blocks) + b"]"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("anthropic", "thinking"),
        ("anthropic", "parallel_tools"),
        ("anthropic", "silent_thinking"),
        ("anthropic", "citations"),
        ("openai-responses", "reasoning"),
        ("openai-responses", "parallel_tools"),
    ],
)
def test_blocks_go_back_byte_for_byte(kind: str, name: str) -> None:
    blocks = blocks_of(kind, name)
    answered = AssistantMessage(text="edited", provider_blocks=ProviderBlocks(dialect=kind, blocks=Raw(blocks)))
    sent = sent_to(dialect(kind), request(user("q"), answered, user("more")))
    for block in msgspec.json.decode(blocks, type=list[Raw]):
        assert bytes(block) in sent
    assert b"edited" not in sent
    place = json.loads(sent)
    returned = place["messages"][1]["content"] if kind == "anthropic" else place["input"][1:-1]
    assert returned == json.loads(blocks)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(blocks=st.lists(st.dictionaries(st.text(max_size=8), json_values, max_size=4), min_size=1, max_size=4))
def test_any_blocks_go_back_as_they_came(blocks: list[dict[str, Any]]) -> None:
    spelled = json.dumps(blocks, ensure_ascii=True, indent=1).encode()
    answered = AssistantMessage(provider_blocks=ProviderBlocks(dialect="anthropic", blocks=Raw(spelled)))
    assert spelled in sent_to(dialect("anthropic"), request(user("q"), answered))
    answered = AssistantMessage(provider_blocks=ProviderBlocks(dialect="openai-responses", blocks=Raw(spelled)))
    assert body("openai-responses", request(user("q"), answered))["input"][1:] == blocks


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_another_dialect_are_rebuilt_from_text_and_calls(kind: str) -> None:
    foreign = ProviderBlocks(dialect="elsewhere", blocks=Raw(b'[{"type":"foreign"}]'))
    answered = AssistantMessage(text="plain words", tool_calls=(call("c1"),), provider_blocks=foreign)
    sent = sent_to(dialect(kind), request(user("q"), answered, ToolMessage(call_id="c1", content="r")))
    assert b"foreign" not in sent
    assert b"plain words" in sent
    assert b"get_weather" in sent


@pytest.mark.parametrize("start", [(AssistantMessage(text="hello"), user("b")), ROUND[1:]])
def test_a_shortened_history_still_begins_with_a_user_for_anthropic(start: tuple[Message, ...]) -> None:
    messages = body("anthropic", request(*start))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[0]["content"][0]["text"].strip()


@pytest.mark.parametrize("kind", ["anthropic", "openai-responses"])
def test_a_round_after_blocks_refers_to_the_ids_in_them(kind: str) -> None:
    answer = fold(streamed(kind, [transcript(kind, "parallel_tools")]))
    answered = AssistantMessage(
        provider_blocks=ProviderBlocks(dialect=kind, blocks=Raw(blocks_of(kind, "parallel_tools")))
    )
    results = tuple(ToolMessage(call_id=call.id, content="r") for call in answer.tool_calls)
    encoded = body(kind, request(user("q"), answered, *results))
    if kind == "anthropic":
        sent = [block["tool_use_id"] for block in encoded["messages"][2]["content"]]
    else:
        sent = [item["call_id"] for item in encoded["input"] if item.get("type") == "function_call_output"]
    assert sent == [call.id for call in answer.tool_calls]


def texts(value: Any) -> list[str]:
    """Every text of a request that a provider refuses when it is blank."""
    found: list[str] = []
    if isinstance(value, dict):
        found += [value[key] for key in ("text", "content", "output") if isinstance(value.get(key), str)]
        for inner in value.values():
            found += texts(inner)
    elif isinstance(value, list):
        for inner in value:
            found += texts(inner)
    return found


ODD: dict[str, tuple[Message, ...]] = {
    "empty text beside calls": (user("q"), AssistantMessage(text="", tool_calls=(call("c"),))),
    "no text beside calls": (user("q"), AssistantMessage(text=None, tool_calls=(call("c"),))),
    "an answer of nothing": (user("q"), AssistantMessage(), user("again")),
    "an answer of empty text": (user("q"), AssistantMessage(text=""), user("again")),
    "an empty tool result": (*ROUND[:2], ToolMessage(call_id="call_1", content="")),
    "a blank tool result": (*ROUND[:2], ToolMessage(call_id="call_1", content=" \n")),
    "an empty failed result": (*ROUND[:2], ToolMessage(call_id="call_1", content="", is_error=True)),
    "no user parts": (UserMessage(parts=()),),
    "an empty user part": (user(""),),
    "a blank user part": (user(" "),),
    "two users in a row": (user("a"), user("b")),
    "a history that begins with an answer": (AssistantMessage(text="hello"), user("b")),
    "a history that begins with a round": ROUND[1:],
    "a user after results": (*ROUND, user("and?")),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ODD)
def test_no_odd_but_legal_shape_sends_an_empty_text(kind: str, shape: str) -> None:
    encoded = body(kind, request(*ODD[shape], system=" "))
    assert all(text.strip() for text in texts(encoded))
    messages = encoded["messages" if kind != "openai-responses" else "input"]
    assert all(message.get("content") != [] for message in messages)
    if kind == "anthropic":
        roles = [message["role"] for message in messages]
        assert all(a != b for a, b in pairwise(roles))


@pytest.mark.parametrize("kind", KINDS)
def test_foreign_ids_are_mapped_the_same_way_everywhere_and_stay_distinct(kind: str) -> None:
    ids = ["ok_1", "with space", "with.dot:é", "x" * 300, "y" * 300, "", "call_" + "0" * 60]
    messages: list[Message] = [user("q"), AssistantMessage(tool_calls=tuple(call(one) for one in ids))]
    messages += [ToolMessage(call_id=one, content="r") for one in ids]
    sent = sent_to(dialect(kind), request(*messages)).decode()
    names = {"anthropic": ("id", "tool_use_id"), "openai-chat": ("id", "tool_call_id")}
    if kind == "openai-responses":
        pairs = [json.loads(sent)["input"][1 + i :: len(ids)] for i in range(len(ids))]
        asked, answered = ([pair[i]["call_id"] for pair in pairs] for i in (0, 1))
    else:
        asked, answered = (re.findall(rf'"{name}":"([^"]*)"', sent) for name in names[kind])
    assert asked == answered
    assert len(set(asked)) == len(ids)
    assert asked[0] == "ok_1"
    limit = {"anthropic": 300, "openai-chat": 40, "openai-responses": 64}[kind]
    assert all(re.fullmatch(r"[\x21-\x7e]+", one) and len(one) <= limit for one in asked)
    if kind == "anthropic":
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", one) for one in asked)


SCHEMAS: list[tuple[str, str]] = [
    ("{}", '{"type":"object","properties":{}}'),
    ('{"type":"object"}', '{"type":"object","properties":{}}'),
    ('{"properties":{}}', '{"properties":{},"type":"object"}'),
    ('{"type":["object","null"],"properties":{}}', '{"type":"object","properties":{}}'),
    ('{"type":"object","properties":null}', '{"type":"object","properties":{}}'),
    (
        '{"type":"object","properties":{"a":{"type":"array"}}}',
        '{"type":"object","properties":{"a":{"type":"array","items":{}}}}',
    ),
    # Whatever means something stays as it was spelled.
    ('{ "type":"object", "properties":{"a":{"type":"array","items":{}}}}', ""),
    ('{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"minimum":1.50}}}', ""),
    ('{"type":"object","properties":{"a":{"type":["string","null"]}},"additionalProperties":false}', ""),
    ('{"type":"object","properties":{"a":{"default":{"type":"array"}}}}', ""),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("given", "expected"), SCHEMAS)
def test_a_schema_is_completed_where_it_has_one_meaning(kind: str, given: str, expected: str) -> None:
    tool = Tool(name="t", description="d", parameters=Raw(given.encode()))
    sent = sent_to(dialect(kind), request(tools=(tool, WEATHER)))
    assert (expected or given).encode() in sent
    assert bytes(WEATHER.parameters) in sent


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", ['{"type":"string"}', "[]", '"x"', "null", '{"a":' * 3000 + "1" + "}" * 3000])
def test_a_schema_that_is_no_object_is_refused_by_the_name_of_its_tool(kind: str, given: str) -> None:
    tool = Tool(name="odd", description="d", parameters=Raw(given.encode()))
    with pytest.raises(GatewayError) as failure:
        sent_to(dialect(kind), request(tools=(tool,)))
    assert failure.value.code is Code.INVALID_REQUEST
    assert failure.value.reason is Reason.TOOL_SCHEMA_WRONG
    assert failure.value.message.details["tool"] == "odd"
    assert failure.value.param == "tools[0].parameters"


PNG = FilePart(kind="image", media_type="image/png", data=b"\x89PNG", name="")
PDF = FilePart(kind="document", media_type="application/pdf", data=b"%PDF", name="a.pdf")
NOTE = FilePart(kind="document", media_type="text/plain", data="è".encode(), name="n.txt")
ZIP = FilePart(kind="document", media_type="application/zip", data=b"PK", name="")


def parts(kind: str, *files: FilePart) -> Any:
    encoded = body(kind, request(UserMessage(parts=files)))
    return encoded["messages" if kind != "openai-responses" else "input"][0]["content"]


def test_files_in_each_dialect() -> None:
    image, pdf, note = parts("anthropic", PNG, PDF, NOTE)
    assert image == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}
    assert (pdf["type"], pdf["title"], pdf["source"]["data"]) == ("document", "a.pdf", "JVBERg==")
    assert note["source"] == {"type": "text", "media_type": "text/plain", "data": "è"}
    assert parts("openai-chat", PNG, NOTE) == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "text", "text": "n.txt\n\nè"},
    ]
    assert parts("openai-responses", PNG, PDF, NOTE) == [
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        {"type": "input_text", "text": "n.txt\n\nè"},
    ]
    official = sent_to(ChatDialect("https://api.openai.com/v1", KEY), request(UserMessage(parts=(PDF,))))
    assert json.loads(official)["messages"][0]["content"][0]["file"]["filename"] == "a.pdf"


@pytest.mark.parametrize(("kind", "file"), [*((kind, ZIP) for kind in KINDS), ("openai-chat", PDF)])
def test_a_file_that_the_provider_cannot_take_is_refused(kind: str, file: FilePart) -> None:
    with pytest.raises(GatewayError) as failure:
        parts(kind, file)
    assert failure.value.code is Code.UNSUPPORTED


@pytest.mark.parametrize("kind", KINDS)
def test_each_round_sends_the_last_one_again_and_adds_to_it(kind: str) -> None:
    """The provider's cache works on prefixes; the marks move on, and are no part of what is compared."""
    history: list[Message] = [user("q")]
    before = b""
    for number in range(5):
        sent = sent_to(dialect(kind), request(*history, system="Be brief.", tools=(WEATHER, TIME)))
        sent = sent.replace(b',"cache_control":{"type":"ephemeral"}', b"")
        if before:
            assert sent.startswith(before.removesuffix(b"]}"))
        before = sent
        history += [AssistantMessage(tool_calls=(call(f"c{number}"),)), ToolMessage(call_id=f"c{number}", content="r")]


def test_cache_marks_are_at_most_four_and_never_inside_what_the_provider_gave() -> None:
    blocks = ProviderBlocks(dialect="anthropic", blocks=Raw(blocks_of("anthropic", "thinking")))
    history = [message for _ in range(4) for message in (user("q"), AssistantMessage(provider_blocks=blocks))]
    encoded = body("anthropic", request(*history, user("last"), system="s", tools=(WEATHER,)))
    assert json.dumps(encoded).count("cache_control") == 4
    for message in encoded["messages"]:
        if message["role"] == "assistant":
            assert "cache_control" not in json.dumps(message)
    assert "cache_control" in encoded["messages"][-1]["content"][-1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_is_in_a_header_and_nowhere_else(kind: str) -> None:
    spoken = dialect(kind)
    assert KEY in str(dict(spoken.headers))
    assert KEY not in repr(spoken) + spoken.url + spoken.probe_url
    assert KEY.encode() not in spoken.encode(FULL)
    assert "Authorization" not in dialect(kind, key=None).headers
    assert "x-api-key" not in dialect(kind, key=None).headers
