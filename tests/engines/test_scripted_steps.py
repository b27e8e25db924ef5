"""A script is checked when the engine is built, and any script that passes plays to exactly one end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from crocevia.core import json
from crocevia.core.calls import ModelRequest
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import ModelEvent, Stopped, ToolCallDone
from crocevia.core.messages import AssistantMessage, Message, Tool, ToolCall, ToolMessage, user
from crocevia.core.texts import render
from crocevia.engines.scripted.engine import ScriptedEngine
from crocevia.engines.scripted.steps import parse
from tests.aio import run
from tests.fakes.requests import model_request

WRONG: list[tuple[list[dict[str, Any]], str, str]] = [
    ([{}], "script_rule_wrong", "script[0]"),
    ([{"say": []}], "script_rule_wrong", "script[0]"),
    ([{"say": [{"text": "x"}], "unless": {}}], "script_rule_wrong", "script[0]"),
    ([{"say": [{"text": "x"}]}, {"when": {"contain": "x"}, "say": [{"text": "x"}]}], "script_rule_wrong", "script[1]"),
    ([{"when": {"nth": 0}, "say": [{"text": "x"}]}], "script_rule_wrong", "script[0]"),
    ([{"when": {"after_tool": 3}, "say": [{"text": "x"}]}], "script_rule_wrong", "script[0]"),
    ([{"say": [{}]}], "script_step_unknown", "script[0].say[0]"),
    ([{"say": [{"txt": "x"}]}], "script_step_unknown", "script[0].say[0]"),
    ([{"say": [{"text": "x", "tool": "y"}]}], "script_step_unknown", "script[0].say[0]"),
    ([{"say": [{"text": "x"}, {"text": 3}]}], "script_step_wrong", "script[0].say[1]"),
    ([{"say": [{"text": "x", "char": 3}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"text": "x", "chars": 0}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"tool": ""}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"tool": "x", "arguments": "{}"}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"tool": "x", "arguments": {"a": object()}}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"usage": {"tokens": 1}}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"usage": {"input_tokens": -1}}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"delay_ms": -1}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"cut": False}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"error": "tired"}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"stop": "later"}]}], "script_step_wrong", "script[0].say[0]"),
    ([{"say": [{"stop": "tool_use"}]}], "script_stop_wrong", "script[0].say[0]"),
    ([{"say": [{"tool": "x"}, {"stop": "end"}]}], "script_stop_wrong", "script[0].say[1]"),
    ([{"say": [{"half_tool": "x"}, {"stop": "tool_use"}]}], "script_stop_wrong", "script[0].say[1]"),
    ([{"say": [{"half_tool": "x"}, {"text": "x"}]}], "script_step_after_half_tool", "script[0].say[1]"),
    ([{"say": [{"tool": "x", "id": "a"}, {"tool": "y", "id": "a"}]}], "script_id_twice", "script[0].say[1]"),
    ([{"say": [{"stop": "end"}, {"text": "x"}]}], "script_step_after_end", "script[0].say[1]"),
    ([{"say": [{"cut": True}, {"delay_ms": 1}]}], "script_step_after_end", "script[0].say[1]"),
    ([{"say": [{"error": "failed"}, {"stop": "end"}]}], "script_step_after_end", "script[0].say[1]"),
]


@pytest.mark.parametrize(("script", "key", "where"), WRONG)
def test_a_wrong_script_is_refused_naming_rule_and_step(script: list[dict[str, Any]], key: str, where: str) -> None:
    with pytest.raises(GatewayError) as caught:
        parse(script, engine="puppet")
    error = caught.value
    assert (error.code, error.message.reason, error.param) == (Code.INVALID_REQUEST, key, f"engines.puppet.{where}")
    assert all("{" not in render(error.message, language) for language in ("en", "it"))  # type: ignore[arg-type]


name = st.sampled_from(["look", "set_climate", "weather"])
text = st.text(max_size=12) | st.sampled_from(["{last_user}", "{tool_result} 🧭"])
value = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | text, lambda v: st.lists(v, max_size=2))
millis = st.floats(0, 1)
pace = {"chars": st.integers(1, 5), "every_ms": millis}
spoken = st.one_of(
    st.fixed_dictionaries({"text": text}, optional=pace),
    st.fixed_dictionaries({"reasoning": text}, optional=pace),
    st.fixed_dictionaries({"tool": name}, optional={"arguments": st.dictionaries(st.text(max_size=5), value)}),
    st.fixed_dictionaries({"usage": st.fixed_dictionaries({}, optional={"output_tokens": st.integers(0, 9)})}),
    st.fixed_dictionaries({"delay_ms": millis}),
)
ending = st.one_of(
    st.just([]),
    st.just([{"half_tool": "look"}]),
    st.just([{"half_tool": "look"}, {"stop": "max_tokens"}]),
    st.sampled_from(["max_tokens", "refusal"]).map(lambda stop: [{"stop": stop}]),
    st.just([{"cut": True}]),
    st.sampled_from(["overloaded", "failed", "timeout", "refused", "rejected"]).map(lambda error: [{"error": error}]),
)
say = st.builds(lambda steps, end: [*steps, *end], st.lists(spoken, max_size=5), ending).filter(bool)
when = st.fixed_dictionaries(
    {},
    optional={
        "contains": text,
        "after_tool": name | st.booleans(),
        "tool_offered": name,
        "nth": st.integers(1, 3),
    },
)
scripts = st.lists(st.fixed_dictionaries({"say": say}, optional={"when": when}), min_size=1, max_size=4)


@st.composite
def requests(draw: st.DrawFn) -> ModelRequest:
    messages: list[Message] = [user(draw(st.text(max_size=20)))]
    for number in range(draw(st.integers(0, 2))):
        call = ToolCall(id=f"c{number}", name=draw(name), arguments=Raw(b"{}"))
        messages += [AssistantMessage(tool_calls=(call,)), ToolMessage(call_id=call.id, content=draw(st.text()))]
    tools = tuple(Tool(name=each, description="", parameters=Raw(b"{}")) for each in draw(st.sets(name)))
    return model_request(messages=tuple(messages), tools=tools, stream=draw(st.booleans()))


@settings(deadline=None, max_examples=150)
@given(scripts, requests())
def test_any_script_that_passes_ends_in_exactly_one_stop_or_one_error(
    script: list[dict[str, Any]], request: ModelRequest
) -> None:
    engine = ScriptedEngine("puppet", parse(script, engine="puppet"))

    async def listen() -> tuple[list[ModelEvent], bool]:
        heard: list[ModelEvent] = []
        try:
            async for batch in engine.call(request, deadline=asyncio.get_running_loop().time() + 30):
                assert batch
                heard += batch
        except GatewayError:
            return heard, True
        return heard, False

    events, failed = run(listen())
    stops = [at for at, event in enumerate(events) if isinstance(event, Stopped)]
    assert stops == ([] if failed else [len(events) - 1])
    done = [event.call for event in events if isinstance(event, ToolCallDone)]
    assert len({call.id for call in done}) == len(done)
    assert all(isinstance(json.decode(bytes(call.arguments)), dict) for call in done)
