"""The scripted engine plays what it is told."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from msgspec import Raw

from crocevia.core import json
from crocevia.core.answers import Answer, fold
from crocevia.core.calls import ModelRequest
from crocevia.core.catalogue import EngineSpec
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import ModelEvent, Stopped, StopReason, TextDelta, ToolCallDone, ToolCallStarted
from crocevia.core.messages import AssistantMessage, Message, Tool, ToolCall, ToolMessage, user
from crocevia.core.usage import Usage
from crocevia.engines.scripted.engine import ScriptedEngine, build
from tests.aio import run
from tests.fakes.requests import model_request

Script = list[dict[str, Any]]
NOTHING: Any = None  # the engine needs neither HTTP nor a key: it must not touch its context


def engine(script: Script | None = None) -> ScriptedEngine:
    return build(EngineSpec(name="puppet", kind="scripted", script=script), NOTHING)


def says(*steps: dict[str, Any]) -> Script:
    return [{"say": list(steps)}]


def request(*messages: Message, tools: tuple[Tool, ...] = (), stream: bool = True, **more: Any) -> ModelRequest:
    return model_request(model="puppet", messages=messages or (user("hello"),), tools=tools, stream=stream, **more)


def tool(name: str, parameters: dict[str, Any] | None = None) -> Tool:
    return Tool(name=name, description="", parameters=Raw(json.encode(parameters or {"type": "object"})))


def after(name: str, result: str, question: str = "hello") -> tuple[Message, ...]:
    call = ToolCall(id="c1", name=name, arguments=Raw(b"{}"))
    return user(question), AssistantMessage(tool_calls=(call,)), ToolMessage(call_id="c1", content=result)


async def batches(who: ScriptedEngine, what: ModelRequest, seconds: float = 5) -> list[list[ModelEvent]]:
    return [batch async for batch in who.call(what, deadline=asyncio.get_running_loop().time() + seconds)]


def play(script: Script | None, what: ModelRequest | None = None) -> list[ModelEvent]:
    return [event for batch in run(batches(engine(script), what or request())) for event in batch]


def answer(script: Script | None, what: ModelRequest | None = None) -> Answer:
    return fold(play(script, what))


def failure(script: Script, what: ModelRequest | None = None) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        play(script, what)
    return caught.value


def test_text_comes_word_by_word_and_folds_to_what_was_written() -> None:
    events = play(says({"text": "one  two\nthree 🧭"}))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["one  ", "two\n", "three ", "🧭"]
    assert fold(events).text == "one  two\nthree 🧭"


def test_text_can_be_cut_into_pieces_of_some_characters() -> None:
    events = play(says({"text": "città", "chars": 2}))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["ci", "tt", "à"]


def test_a_call_that_does_not_stream_gets_one_batch() -> None:
    script = says({"reasoning": "hm"}, {"text": "a b c"}, {"tool": "look"})
    assert len(run(batches(engine(script), request(stream=False)))) == 1
    assert answer(script, request(stream=False)) == answer(script, request(stream=True))


def test_a_tool_call_starts_grows_and_is_done_with_its_arguments() -> None:
    events = play(says({"tool": "set_climate", "arguments": {"target": "salone"}}, {"tool": "look", "id": "mine"}))
    folded = fold(events)
    assert [(call.id, call.name, bytes(call.arguments)) for call in folded.tool_calls] == [
        ("call_1_0", "set_climate", b'{"target":"salone"}'),
        ("mine", "look", b"{}"),
    ]
    assert folded.stop is StopReason.TOOL_USE
    spelled = "".join(getattr(event, "fragment", "") for event in events if getattr(event, "index", 0) == 0)
    assert spelled == '{"target":"salone"}'


def test_half_a_tool_call_is_started_and_never_done() -> None:
    events = play(says({"half_tool": "look", "fragment": '{"a":'}))
    assert any(isinstance(event, ToolCallStarted) for event in events)
    assert not any(isinstance(event, ToolCallDone) for event in events)
    assert events[-1] == Stopped(StopReason.MAX_TOKENS)


def test_generated_tool_ids_do_not_repeat_within_a_conversation() -> None:
    script = says({"tool": "look"})
    first = answer(script).tool_calls[0].id
    assert answer(script, request(*after("look", "x"))).tool_calls[0].id != first


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("overloaded", Code.UPSTREAM_OVERLOADED),
        ("failed", Code.UPSTREAM_FAILED),
        ("timeout", Code.UPSTREAM_TIMEOUT),
        ("refused", Code.REFUSED),
        ("rejected", Code.UPSTREAM_REJECTED),
    ],
)
def test_an_error_is_raised_with_its_code(error: str, code: Code) -> None:
    assert failure(says({"text": "half a"}, {"error": error})).code is code


def test_an_overload_can_say_when_to_come_back() -> None:
    assert failure(says({"error": "overloaded", "retry_after": 7})).retry_after == 7


def test_a_cut_says_what_came_before_and_then_fails_without_a_stop() -> None:
    async def listen() -> list[ModelEvent]:
        heard: list[ModelEvent] = []
        with pytest.raises(GatewayError) as caught:
            async for batch in engine(says({"text": "half a"}, {"cut": True})).call(request(), deadline=1e12):
                heard += batch
        assert caught.value.code is Code.UPSTREAM_FAILED
        return heard

    folded = fold(run(listen()))
    assert (folded.text, folded.stop, folded.usage) == ("half a", None, Usage(input_tokens=1, output_tokens=2))


@pytest.mark.parametrize("stop", [StopReason.END, StopReason.MAX_TOKENS, StopReason.REFUSAL])
def test_a_stop_is_said_as_written(stop: StopReason) -> None:
    assert answer(says({"text": "so"}, {"stop": stop.value})).stop is stop


def test_words_are_counted_as_tokens() -> None:
    what = request(user("one two three"), tools=(tool("look"),), system="be brief")
    assert answer(says({"reasoning": "well"}, {"text": "four five"}), what).usage == Usage(
        input_tokens=6, output_tokens=3
    )


def test_reported_usage_takes_the_place_of_counting() -> None:
    assert answer(says({"usage": {"input_tokens": 1840}}, {"text": "x"})).usage == Usage(input_tokens=1840)


def test_placeholders_are_filled_once() -> None:
    what = request(*after("look", "18 degrees {last_user}", question="how warm? {tool_result}"))
    assert answer(says({"text": "{last_user} {tool_result} {x}"}), what).text == (
        "how warm? {tool_result} 18 degrees {last_user} {x}"
    )


CONDITIONS: list[tuple[dict[str, Any], ModelRequest, bool]] = [
    ({}, request(), True),
    ({"contains": "HELLO"}, request(user("well, hello there")), True),
    ({"contains": "bye"}, request(), False),
    ({"tool_offered": "look"}, request(tools=(tool("look"),)), True),
    ({"tool_offered": "look"}, request(tools=(tool("looks"),)), False),
    ({"after_tool": "look"}, request(*after("look", "x")), True),
    ({"after_tool": "other"}, request(*after("look", "x")), False),
    ({"after_tool": True}, request(*after("look", "x")), True),
    ({"after_tool": True}, request(), False),
    ({"after_tool": False}, request(), True),
    ({"after_tool": True}, request(*after("look", "x"), user("and now?")), False),
    ({"nth": 1}, request(), True),
    ({"nth": 2}, request(*after("look", "x")), True),
    ({"nth": 1}, request(*after("look", "x")), False),
    ({"contains": "hello", "nth": 2}, request(), False),
]


@pytest.mark.parametrize(("when", "what", "holds"), CONDITIONS)
def test_the_first_rule_whose_conditions_all_hold_answers(
    when: dict[str, Any], what: ModelRequest, holds: bool
) -> None:
    script: Script = [{"when": when, "say": [{"text": "first"}]}, {"say": [{"text": "second"}]}]
    assert answer(script, what).text == ("first" if holds else "second")


def test_a_call_that_no_rule_fits_is_rejected_with_the_reason() -> None:
    error = failure([{"when": {"contains": "bye"}, "say": [{"text": "x"}]}])
    assert (error.code, error.message.reason) == (Code.UPSTREAM_REJECTED, "script_no_rule")


def test_a_delay_ends_at_the_deadline() -> None:
    async def wait() -> float:
        began = time.monotonic()
        with pytest.raises(GatewayError) as caught:
            await batches(engine(says({"delay_ms": 60_000})), request(), seconds=0.05)
        assert caught.value.code is Code.UPSTREAM_TIMEOUT
        return time.monotonic() - began

    assert run(wait()) < 5


def test_a_delay_is_abandoned_at_once_when_the_call_is_cancelled() -> None:
    async def cancel() -> None:
        task = asyncio.create_task(batches(engine(says({"delay_ms": 60_000})), request(), seconds=100))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancel(), timeout=5)


def test_a_long_answer_lets_others_run() -> None:
    async def share() -> int:
        turns = 0
        talking = asyncio.create_task(batches(engine(says({"text": "word " * 200})), request()))
        while not talking.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert run(share()) > 100


def test_probing_and_closing_need_nothing() -> None:
    async def both() -> None:
        await engine().probe()
        await engine().close()

    run(both())
