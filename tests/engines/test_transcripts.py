"""What every recorded answer decodes to, streamed in any split and whole."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.answers import Answer, fold
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import (
    ModelEvent,
    ProviderBlock,
    Stopped,
    StopReason,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
)
from crocevia.core.usage import Usage

from .dialects import answer, names, streamed, transcript, whole

END, TOOLS, LIMIT, REFUSAL = StopReason.END, StopReason.TOOL_USE, StopReason.MAX_TOKENS, StopReason.REFUSAL


class Said(NamedTuple):
    stop: StopReason
    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    reasoning: str = ""
    blocks: tuple[str, ...] = ()


WEATHER = '{"location": "Cefalù"}'
HEAT = '{"t": 2.10e1,"room":null}'

ANSWERS: dict[tuple[str, str], Said] = {
    ("anthropic", "text"): Said(END, "Perché no? 🙂", blocks=("text",)),
    ("anthropic", "parallel_tools"): Said(
        TOOLS,
        "Let me look.",
        (
            ("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", WEATHER),
            ("toolu_01A09q90qw90lq917835lq9", "get_time", "{}"),
            ("toolu_01XqLr8ZbCkWf2yT5nJd3vGh", "set_heat", HEAT),
        ),
        blocks=("text", "tool_use", "tool_use", "tool_use"),
    ),
    ("anthropic", "thinking"): Said(
        END,
        "It is 21.",
        reasoning="First, the greatest common divisor.",
        blocks=("thinking", "redacted_thinking", "text"),
    ),
    ("anthropic", "silent_thinking"): Said(END, "21", blocks=("thinking", "text")),
    ("anthropic", "citations"): Said(END, "Green.", blocks=("text",)),
    ("anthropic", "cached_usage"): Said(END, "ok", blocks=("text",)),
    ("anthropic", "limit_in_text"): Said(LIMIT, "Once upon", blocks=("text",)),
    ("anthropic", "limit_in_tool"): Said(LIMIT, "Writing.", blocks=("text",)),
    ("anthropic", "limit_before_arguments"): Said(LIMIT),
    ("anthropic", "refusal"): Said(REFUSAL, "I can", blocks=("text",)),
    ("openai-chat", "text"): Said(END, "Perché no? 🙂"),
    ("openai-chat", "parallel_tools"): Said(
        TOOLS,
        calls=(
            ("call_DdmO9pD3xa9XTPNJ32zg2hcA", "get_weather", WEATHER),
            ("call_62136355", "get_time", "{}"),
            ("call_62136356", "set_heat", HEAT),
        ),
    ),
    ("openai-chat", "one_index_for_all"): Said(TOOLS, calls=(("call_a", "f", '{"n":1}'), ("call_b", "f", '{"n":2}'))),
    ("openai-chat", "without_index"): Said(TOOLS, calls=(("call_a", "f", '{"n":1}'), ("call_b", "f", "{}"))),
    ("openai-chat", "reasoning"): Said(END, "21", reasoning="First, the divisor."),
    ("openai-chat", "reasoning_short_name"): Said(END, "21", reasoning="Hm."),
    ("openai-chat", "without_done"): Said(END, "ok"),
    ("openai-chat", "limit_in_tool"): Said(LIMIT),
    ("openai-chat", "limit_before_arguments"): Said(LIMIT),
    ("openai-chat", "refusal"): Said(REFUSAL),
    ("openai-chat", "filtered"): Said(REFUSAL, "I can"),
    ("openai-responses", "text"): Said(END, "Perché no? 🙂", blocks=("message",)),
    ("openai-responses", "parallel_tools"): Said(
        TOOLS,
        calls=(
            ("call_unDf4x", "get_weather", WEATHER),
            ("call_2", "get_time", "{}"),
            ("call_3", "set_heat", HEAT),
        ),
        blocks=("function_call", "function_call", "function_call"),
    ),
    ("openai-responses", "reasoning"): Said(
        END, "21", reasoning="First, the divisor.", blocks=("reasoning", "message")
    ),
    ("openai-responses", "items_only_at_the_end"): Said(
        TOOLS, "21", (("call_1", "f", "{}"),), blocks=("message", "function_call")
    ),
    ("openai-responses", "limit_in_tool"): Said(LIMIT),
    ("openai-responses", "limit_before_arguments"): Said(LIMIT),
    ("openai-responses", "limit_in_text"): Said(LIMIT, "Once upon", blocks=("message",)),
    ("openai-responses", "refusal"): Said(REFUSAL, blocks=("message",)),
    ("openai-responses", "filtered"): Said(REFUSAL, "I can", blocks=("message",)),
}

FAILURES: dict[tuple[str, str], tuple[Code, bool]] = {
    ("anthropic", "malformed_tool"): (Code.UPSTREAM_FAILED, False),
    ("anthropic", "overloaded_first"): (Code.UPSTREAM_OVERLOADED, True),
    ("anthropic", "overloaded_after_start"): (Code.UPSTREAM_OVERLOADED, True),
    ("anthropic", "overloaded_after_two"): (Code.UPSTREAM_OVERLOADED, True),
    ("anthropic", "invalid_request"): (Code.UPSTREAM_REJECTED, False),
    ("anthropic", "without_end"): (Code.UPSTREAM_FAILED, False),
    ("openai-chat", "malformed_tool"): (Code.UPSTREAM_FAILED, False),
    ("openai-chat", "overloaded_first"): (Code.UPSTREAM_OVERLOADED, True),
    ("openai-chat", "overloaded_after_two"): (Code.UPSTREAM_OVERLOADED, True),
    ("openai-chat", "failed_with_a_status"): (Code.UPSTREAM_FAILED, True),
    ("openai-chat", "without_end"): (Code.UPSTREAM_FAILED, False),
    ("openai-responses", "malformed_tool"): (Code.UPSTREAM_FAILED, False),
    ("openai-responses", "overloaded_first"): (Code.UPSTREAM_OVERLOADED, True),
    ("openai-responses", "overloaded_after_start"): (Code.UPSTREAM_OVERLOADED, True),
    ("openai-responses", "overloaded_after_two"): (Code.UPSTREAM_OVERLOADED, True),
    ("openai-responses", "invalid_request"): (Code.UPSTREAM_REJECTED, False),
    ("openai-responses", "without_end"): (Code.UPSTREAM_FAILED, False),
}

USAGES: dict[tuple[str, str], Usage] = {
    ("anthropic", "text"): Usage(input_tokens=25, output_tokens=15),
    ("anthropic", "cached_usage"): Usage(
        input_tokens=12307, output_tokens=550, cache_read_tokens=0, cache_write_tokens=12304
    ),
    ("anthropic", "thinking"): Usage(input_tokens=25, output_tokens=60, reasoning_tokens=41),
    ("openai-chat", "text"): Usage(input_tokens=19, output_tokens=10, cache_read_tokens=16, reasoning_tokens=4),
    ("openai-chat", "reasoning"): Usage(input_tokens=13, output_tokens=20, cache_read_tokens=8, reasoning_tokens=17),
    ("openai-chat", "without_done"): Usage(),
    ("openai-responses", "text"): Usage(input_tokens=36, output_tokens=87, cache_read_tokens=12, reasoning_tokens=7),
    ("openai-responses", "limit_in_tool"): Usage(
        input_tokens=36, output_tokens=87, cache_read_tokens=12, reasoning_tokens=7
    ),
}


def said(result: Answer) -> Said:
    assert result.stop is not None
    return Said(
        result.stop,
        result.text,
        tuple((call.id, call.name, bytes(call.arguments).decode()) for call in result.tool_calls),
        result.reasoning,
        tuple(msgspec.json.decode(block.block)["type"] for block in result.blocks),
    )


def outcome(kind: str, chunks: list[bytes]) -> list[ModelEvent] | tuple[Code, bool, str]:
    try:
        return streamed(kind, chunks)
    except GatewayError as failure:
        return failure.code, failure.retryable, failure.message.reason


def test_every_transcript_has_its_meaning_written_down() -> None:
    assert set(names("sse")) == {*ANSWERS, *FAILURES}


@pytest.mark.parametrize(("kind", "name"), sorted(ANSWERS))
def test_an_answer_is_decoded(kind: str, name: str) -> None:
    expected = ANSWERS[kind, name]
    assert said(answer(kind, name)) == expected


@pytest.mark.parametrize(("kind", "name"), sorted(FAILURES))
def test_a_failure_is_named_and_nothing_of_it_is_repeated(kind: str, name: str) -> None:
    with pytest.raises(GatewayError) as failure:
        answer(kind, name)
    assert (failure.value.code, failure.value.retryable) == FAILURES[kind, name]
    for shown in (repr(failure.value), str(failure.value), str(failure.value.message)):
        assert "secret" not in shown


@pytest.mark.parametrize(("kind", "name"), sorted(USAGES))
def test_usage_is_counted_once(kind: str, name: str) -> None:
    assert answer(kind, name).usage == USAGES[kind, name]


@pytest.mark.parametrize(("kind", "name"), names("json"))
def test_a_body_says_what_its_stream_says(kind: str, name: str) -> None:
    body = transcript(kind, name, "json")
    if (kind, name) in FAILURES:
        with pytest.raises(GatewayError) as failure:
            whole(kind, body)
        assert (failure.value.code, failure.value.retryable) == FAILURES[kind, name]
        return
    once, pieces = fold(whole(kind, body)), answer(kind, name)
    assert said(once) == said(pieces)
    assert once.usage == pieces.usage
    assert [(block.dialect, msgspec.json.decode(block.block)) for block in once.blocks] == [
        (block.dialect, msgspec.json.decode(block.block)) for block in pieces.blocks
    ]


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize(("kind", "name"), names("sse"))
def test_small_reads_give_the_same_events(kind: str, name: str, size: int) -> None:
    stream = transcript(kind, name)
    expected = outcome(kind, [stream])
    assert outcome(kind, [stream[start : start + size] for start in range(0, len(stream), size)]) == expected


@given(case=st.sampled_from(names("sse")), cuts=st.lists(st.integers(0, 5000), max_size=8), crlf=st.booleans())
def test_any_split_gives_the_same_events(case: tuple[str, str], cuts: list[int], crlf: bool) -> None:
    kind, name = case
    stream = transcript(kind, name)
    expected = outcome(kind, [stream])
    if crlf:
        stream = stream.replace(b"\n", b"\r\n")
    borders = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
    assert outcome(kind, [stream[a:b] for a, b in pairwise(borders)]) == expected


@pytest.mark.parametrize(("kind", "name"), names("sse"))
def test_events_keep_their_order_and_stop_once_at_the_end(kind: str, name: str) -> None:
    if (kind, name) in FAILURES:
        return
    events = streamed(kind, [transcript(kind, name)])
    assert [type(event) for event in events].count(Stopped) == 1
    assert type(events[-1]) is Stopped
    started: dict[int, str] = {}
    for event in events:
        if isinstance(event, ToolCallStarted):
            assert event.index == len(started)
            started[event.index] = event.id
        elif isinstance(event, ToolCallDelta):
            assert event.index in started
        elif isinstance(event, ToolCallDone):
            assert started[event.index] == event.call.id


@pytest.mark.parametrize("kind", ["anthropic", "openai-chat", "openai-responses"])
@pytest.mark.parametrize("after", ["cut", "cut in the middle of an event"])
def test_a_stream_cut_anywhere_before_its_end_fails_exactly_once(kind: str, after: str) -> None:
    events = transcript(kind, "parallel_tools").split(b"\n\n")
    for count in range(len(events) - 2):
        stream = b"\n\n".join(events[:count]) + (b"\n\n" if after == "cut" else b"\n\nda")
        if b'"finish_reason":"tool_calls"' in stream:
            continue  # with a finish reason the answer is complete
        assert outcome(kind, [stream]) == (Code.UPSTREAM_FAILED, False, "upstream_cut"), count


def anthropic_call(fragments: list[str]) -> bytes:
    deltas: list[dict[str, Any]] = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in fragments
    ]
    block = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


def chat_call(fragments: list[str]) -> bytes:
    first: dict[str, Any] = {"index": 0, "id": "c1", "function": {"name": "f"}}
    pieces = [first, *({"index": 0, "function": {"arguments": piece}} for piece in fragments)]
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    return b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks)


def responses_call(fragments: list[str]) -> bytes:
    item = {"type": "function_call", "id": "fc_9", "call_id": "c1", "name": "f", "status": "completed"}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
        *({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": piece} for piece in fragments),
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "arguments": "".join(fragments)}},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ]
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


CALLS = {"anthropic": anthropic_call, "openai-chat": chat_call, "openai-responses": responses_call}
FORTY = '{"path":"a.txt","n":[1,2,3],"è":"🙂ok"}'


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize(
    ("fragments", "expected"),
    [([], "{}"), ([""], "{}"), ([" ", "\n"], "{}"), (list(FORTY), FORTY), (["{", "}"], "{}"), ([" {}"], " {}")],
)
def test_arguments_are_joined_and_read_once(kind: str, fragments: list[str], expected: str) -> None:
    result = fold(streamed(kind, [CALLS[kind](fragments)]))
    assert [(call.id, call.name, bytes(call.arguments).decode()) for call in result.tool_calls] == [
        ("c1", "f", expected)
    ]
    assert result.stop is StopReason.TOOL_USE


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("text", ["{", "[]", '"x"', "null", "3", '{"a":NaN}', "{}{}", '{"a":1,}', "{'a':1}"])
def test_anything_else_than_an_object_is_an_error_and_never_an_empty_call(kind: str, text: str) -> None:
    with pytest.raises(GatewayError) as failure:
        streamed(kind, [CALLS[kind]([text])])
    assert failure.value.code is Code.UPSTREAM_FAILED
    assert not failure.value.retryable


@pytest.mark.parametrize("kind", CALLS)
def test_five_megabytes_of_arguments_arrive_whole(kind: str) -> None:
    text = json.dumps({"content": "x" * (5 * 2**20)})
    result = fold(streamed(kind, [CALLS[kind]([text])]))
    assert bytes(result.tool_calls[0].arguments).decode() == text


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("body", [b"", b"<html>no</html>", b"[]", b"{}", b'"x"', b"\xff", b"[" * 100_000])
def test_nonsense_is_a_failure_and_never_another_exception(kind: str, body: bytes) -> None:
    with pytest.raises(GatewayError) as failure:
        whole(kind, body)
    assert failure.value.code is Code.UPSTREAM_FAILED
    with pytest.raises(GatewayError) as failure:
        streamed(kind, [b"data: " + body + b"\n\n"])
    assert failure.value.code is Code.UPSTREAM_FAILED


def test_a_streamed_block_is_the_block_of_the_body() -> None:
    events = streamed("anthropic", [transcript("anthropic", "thinking")])
    blocks = [bytes(event.block) for event in events if isinstance(event, ProviderBlock)]
    assert blocks == [
        b'{"type":"thinking","thinking":"First, the greatest common divisor.",'
        b'"signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h=="}',
        b'{"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a+/=="}',
        b'{"type":"text","text":"It is 21.","later_field":{"kept": [1, 2.50]}}',
    ]


def test_a_streamed_tool_input_keeps_its_spelling_in_the_block() -> None:
    events = streamed("anthropic", [transcript("anthropic", "parallel_tools")])
    blocks = [bytes(event.block) for event in events if isinstance(event, ProviderBlock)]
    assert blocks[3].endswith(b'"input":{"t": 2.10e1,"room":null}}')
    assert b'"input": {}' in blocks[2]
