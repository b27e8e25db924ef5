"""What the small model is shown, and what it may answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from crocevia.core.errors import Code, GatewayError
from crocevia.core.messages import (
    AssistantMessage,
    FilePart,
    Tool,
    ToolCall,
    ToolExample,
    ToolMessage,
    UserMessage,
    user,
)
from crocevia.engines.llama import prompt
from crocevia.engines.llama.schema import ANY_OBJECT, arguments_schema


def tool(name: str = "get_home_status", parameters: Any = None, **rest: Any) -> Tool:
    raw = Raw(json.dumps({"type": "object", "properties": {}} if parameters is None else parameters).encode())
    return Tool(name=name, description="Read the\n house.", parameters=raw, **rest)


def call(id: str = "c1", name: str = "get_home_status", arguments: bytes = b"{}") -> ToolCall:
    return ToolCall(id=id, name=name, arguments=Raw(arguments))


ROUND = (
    user("How warm is it?"),
    AssistantMessage(tool_calls=(call(),)),
    ToolMessage(call_id="c1", content='{"t": 21}'),
)


def test_without_tools_the_conversation_is_plain_chat() -> None:
    assert prompt.chat("Be brief.", (user("Hi"), AssistantMessage(text="Hello."), user("Bye"))) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye"},
    ]


def test_a_result_is_written_into_the_user_turn() -> None:
    shown = prompt.chat_with_tools("You are Pepper.", [tool()], ROUND)
    assert shown[-1] == {"role": "user", "content": 'User: How warm is it?\n\nget_home_status returned: {"t": 21}'}
    assert shown[-2]["role"] == "assistant"


def test_a_failed_tool_says_that_it_failed() -> None:
    failed = (*ROUND[:2], ToolMessage(call_id="c1", content="no network", is_error=True))
    assert prompt.chat(None, failed)[-1]["content"].endswith("get_home_status failed: no network")


def test_a_closed_round_is_followed_by_its_answer_as_a_reply() -> None:
    shown = prompt.chat_with_tools(None, [tool()], (*ROUND, AssistantMessage(text="21 degrees."), user("Thanks")))
    assert shown[-2:] == [
        {"role": "assistant", "content": '{"reply": "21 degrees."}'},
        {"role": "user", "content": "User: Thanks"},
    ]


def test_all_conversations_with_tools_begin_with_the_lesson() -> None:
    lesson = list(prompt.lesson())
    for shown in (
        prompt.chat_with_tools(None, [tool()], (user("a"),)),
        prompt.chat_with_tools("Other.", [tool("x"), tool("y")], ROUND),
    ):
        assert shown[: len(lesson)] == lesson


def test_tools_are_shown_with_their_choices() -> None:
    climate = tool(
        "set_climate",
        {
            "type": "object",
            "properties": {
                "target": {"enum": ["salone", "è"]},
                "n": {"type": ["integer", "null"]},
                "x": {},
                "c": {"const": 1},
            },
        },
    )
    introduction = prompt.chat_with_tools("You are Pepper.", [climate, tool()], (user("a"),))[-3]["content"]
    assert introduction.startswith("You are Pepper.\n\nTools:\n")
    assert (
        '- set_climate {"target": "salone"|"è", "n": integer|null, "x": any, "c": 1}: Read the house.' in introduction
    )
    assert "- get_home_status {}: Read the house." in introduction


def test_the_examples_of_a_tool_are_shown_as_turns() -> None:
    example = ToolExample(utterance="fa caldo?", arguments=Raw(b'{"room":"salone"}'))
    shown = prompt.chat_with_tools(None, [tool(examples=(example,))], (user("a"),))
    assert shown[-3:-1] == [
        {"role": "user", "content": "User: fa caldo?"},
        {"role": "assistant", "content": '{"name": "get_home_status", "arguments": {"room": "salone"}}'},
    ]


def test_files_are_refused_as_unsupported() -> None:
    photo = FilePart(kind="image", media_type="image/png", data=b"", name="a.png")
    for show in (prompt.chat, lambda system, messages: prompt.chat_with_tools(system, [tool()], messages)):
        with pytest.raises(GatewayError) as caught:
            show(None, (UserMessage(parts=(photo,)),))
        assert caught.value.code is Code.UNSUPPORTED


roles = st.sampled_from(
    [
        user("u"),
        user(""),
        AssistantMessage(text="a"),
        AssistantMessage(text=None),
        *ROUND[1:],
        AssistantMessage(text=""),
    ]
)


@given(st.lists(roles))
def test_turns_alternate_whatever_the_history(messages: list[Any]) -> None:
    shown = prompt.chat(None, messages)
    assert [turn["role"] for turn in shown] == (["user", "assistant"] * len(shown))[: len(shown)]


def test_a_call_counts_as_answered_until_the_user_speaks_again() -> None:
    spelled = call(arguments=b'{"b": 1, "a": [2]}')
    round_ = (user("q"), AssistantMessage(tool_calls=(spelled,)), ToolMessage(call_id="c1", content="r"))
    again = prompt.call_key(call("c2", arguments=b'{"a":[2],"b":1}'))
    assert again in prompt.answered_calls(round_)
    assert again not in prompt.answered_calls(round_[:2])
    assert again not in prompt.answered_calls((*round_, user("and now?")))
    assert prompt.call_key(call(arguments=b"{}")) not in prompt.answered_calls(round_)


FREE: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("declared", "made"),
    [
        ({"type": "object"}, {"type": "object", "properties": {}, "additionalProperties": False}),
        ({}, {"type": "object", "properties": {}, "additionalProperties": False}),
        ({"type": "object", "additionalProperties": True}, ANY_OBJECT),
        ({"allOf": [{"properties": {}}]}, ANY_OBJECT),
        ([], ANY_OBJECT),
        (True, ANY_OBJECT),
        ({"properties": [1]}, ANY_OBJECT),
    ],
)
def test_roots(declared: Any, made: dict[str, Any]) -> None:
    assert arguments_schema(Raw(json.dumps(declared).encode())) == made


@pytest.mark.parametrize(
    ("declared", "made"),
    [
        ({"type": "string", "pattern": "(a+)+$", "format": "date"}, {"type": "string", "maxLength": 2000}),
        ({"type": "string", "maxLength": 10**9}, {"type": "string", "maxLength": 2000}),
        ({"type": "integer", "minimum": 1, "maximum": 5}, {"type": "integer", "minimum": 1, "maximum": 5}),
        ({"type": "integer", "minimum": 5, "maximum": 1}, {"type": "integer"}),
        ({"type": "integer", "minimum": "1", "maximum": 2.5}, {"type": "integer"}),
        ({"type": "number", "multipleOf": 0.01}, {"type": "number"}),
        ({"type": "wat"}, FREE),
        ({"type": 5}, FREE),
        ({"type": ["string", "wat"]}, FREE),
        ({"type": []}, FREE),
        ({"enum": []}, FREE),
        ({"enum": ["a", 1]}, {"enum": ["a", 1]}),
        ({"type": "string", "enum": [str(n) for n in range(5000)]}, {"type": "string", "maxLength": 2000}),
        ({"const": None}, {"const": None}),
        ({"not": {}}, FREE),
        (True, FREE),
        ({"$ref": "#/$defs/x"}, {"type": "boolean"}),
        ({"$ref": "#/$defs/loop"}, FREE),
        ({"$ref": "#/nowhere"}, FREE),
        ({"$ref": "http://127.0.0.1/x"}, FREE),
        ({"$ref": 5}, FREE),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, {"anyOf": [{"type": "null"}, {"type": "boolean"}]}),
        (
            {"type": "array", "items": {"type": "null"}, "minItems": 10**6},
            {"type": "array", "items": {"type": "null"}, "minItems": 50, "maxItems": 50},
        ),
        ({"type": "object"}, ANY_OBJECT),
        ({"type": "object", "properties": {f"p{n}": {} for n in range(500)}}, ANY_OBJECT),
    ],
)
def test_properties(declared: Any, made: dict[str, Any]) -> None:
    root = {
        "type": "object",
        "properties": {"a": declared},
        "required": ["a", "ghost"],
        "$defs": {"x": {"type": "boolean"}, "loop": {"$ref": "#/$defs/loop"}},
    }
    assert arguments_schema(Raw(json.dumps(root).encode())) == {
        "type": "object",
        "properties": {"a": made},
        "required": ["a"],
        "additionalProperties": False,
    }


words = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "enum",
        "anyOf",
        "oneOf",
        "required",
        "$ref",
        "#",
        "#/properties",
        "object",
        "array",
    ]
)
json_values = st.recursive(
    words | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=30,
)


@given(json_values)
def test_any_json_at_all_becomes_an_object_schema_of_known_keywords(declared: Any) -> None:
    made = arguments_schema(Raw(json.dumps(declared).encode()))
    assert made.get("type") == "object"


def test_nesting_is_bounded() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        deep = {"type": "object", "properties": {"a": deep}}
    assert len(json.dumps(arguments_schema(Raw(json.dumps(deep).encode())))) < 2000


def test_a_schema_that_points_at_itself_ends() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    assert len(json.dumps(arguments_schema(Raw(json.dumps(tree).encode())))) < 4000


def test_a_schema_that_unfolds_without_end_becomes_any_object() -> None:
    bush = {"type": "object", "properties": {f"p{n}": {"$ref": "#"} for n in range(40)}}
    assert arguments_schema(Raw(json.dumps(bush).encode())) == ANY_OBJECT
