"""Oddities of providers, as they were seen, each with what it means: tables over the dialects."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from crocevia.core.answers import Answer, fold
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import ModelEvent, StopReason, TextDelta, ToolCallDelta, ToolCallStarted
from crocevia.engines.upstream.reading import MAX_ANSWER, AnswerReader

from .dialects import dialect, names, read, streamed, transcript, whole

END, TOOLS, LIMIT = StopReason.END, StopReason.TOOL_USE, StopReason.MAX_TOKENS
REFUSAL, UNKNOWN = StopReason.REFUSAL, StopReason.INCOMPLETE


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


def chat(*deltas: dict[str, Any], finish: str | None = "stop") -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return sse(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}) + b"data: [DONE]\n\n"


def called(*pieces: dict[str, Any], finish: str = "tool_calls") -> bytes:
    return chat(*({"tool_calls": [piece]} for piece in pieces), finish=finish)


def message(*events: dict[str, Any], stop: str | None = "end_turn") -> bytes:
    ending = {"type": "message_delta", "delta": {"stop_reason": stop}}
    return sse({"type": "message_start", "message": {}}, *events, ending, {"type": "message_stop"})


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def spell(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def text_of(kind: str, word: str | None) -> tuple[bytes, bytes]:
    """An answer «hi» that ends with `word`: as a stream and as a body."""
    if kind == "openai-chat":
        body = {"choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": word}]}
        return chat({"content": "hi"}, finish=word), json.dumps(body).encode()
    if kind == "anthropic":
        block = {"type": "text", "text": "hi"}
        events = [begin(0, type="text", text=""), spell(0, type="text_delta", text="hi"), stop(0)]
        return message(*events, stop=word), json.dumps({"content": [block], "stop_reason": word}).encode()
    item = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
    status, _, why = (word or "").partition(":")
    response = {"output": [item], "status": status or None, "incomplete_details": {"reason": why} if why else None}
    final = "response.incomplete" if status == "incomplete" else "response.completed"
    if status not in ("", "completed", "incomplete"):
        return b"", json.dumps(response).encode()
    return sse({"type": final, "response": response}), json.dumps(response).encode()


FINISHES: dict[str, dict[str | None, StopReason | Reason]] = {
    "openai-chat": {
        "stop": END,
        "STOP": END,
        "eos": END,
        "length": LIMIT,
        "max_tokens": LIMIT,
        "model_length": LIMIT,
        "content_filter": REFUSAL,
        "SAFETY": REFUSAL,
        "sensitive": REFUSAL,
        "error": Reason.UPSTREAM_FAILED,
        "network_error": Reason.UPSTREAM_FAILED,
        "abort": Reason.UPSTREAM_FAILED,
        "timeout": Reason.UPSTREAM_TIMEOUT,
        "insufficient_system_resource": Reason.UPSTREAM_OVERLOADED,
        "pause_turn": UNKNOWN,
        "something_new": UNKNOWN,
        "a sentence, perhaps with a secret": UNKNOWN,
        None: END,
    },
    "anthropic": {
        "end_turn": END,
        "stop_sequence": END,
        "max_tokens": LIMIT,
        "model_context_window_exceeded": LIMIT,
        "refusal": REFUSAL,
        "pause_turn": UNKNOWN,
        "compaction": UNKNOWN,
        "something_new": UNKNOWN,
        "network_error": Reason.UPSTREAM_FAILED,
        None: END,
    },
    "openai-responses": {
        "completed": END,
        None: END,
        "incomplete:max_output_tokens": LIMIT,
        "incomplete:content_filter": REFUSAL,
        "incomplete:something_new": UNKNOWN,
        "incomplete": UNKNOWN,
        "incomplete:network_error": Reason.UPSTREAM_FAILED,
        "in_progress": UNKNOWN,
        "queued": UNKNOWN,
        "something_new": UNKNOWN,
        "failed": Reason.UPSTREAM_FAILED,
        "cancelled": Reason.UPSTREAM_FAILED,
    },
}


@pytest.mark.parametrize(("kind", "word"), [(kind, word) for kind, words in FINISHES.items() for word in words])
def test_every_word_for_an_end_has_its_meaning_and_an_unknown_one_is_no_success(kind: str, word: str | None) -> None:
    expected = FINISHES[kind][word]
    pieces, body = text_of(kind, word)
    for stream, data in ((True, pieces), (False, body)):
        if not data:
            continue
        if isinstance(expected, Reason):
            with pytest.raises(GatewayError) as failure:
                read(kind, [data], stream=stream)
            assert failure.value.reason is expected
            continue
        events = read(kind, [data], stream=stream)
        assert (fold(events).text, fold(events).stop) == ("hi", expected)
        assert "secret" not in repr(events[-1])


def test_an_unknown_word_is_kept_for_the_record_if_it_is_a_word() -> None:
    for word, kept in (("something_new", "something_new"), ("a sentence", ""), ("x" * 41, "")):
        assert streamed("openai-chat", [chat({"content": "hi"}, finish=word)])[-1].word == kept  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "name"), names("sse"))
@pytest.mark.parametrize(
    "blank",
    [b"data: \n\n", b"data:\n\n", b"data\n\n", b"data:   \n\n", b": still here\n\n", b"event: ping\ndata: \n\n"],
)
def test_blank_events_between_the_others_say_nothing(kind: str, name: str, blank: bytes) -> None:
    stream = transcript(kind, name)
    assert outcome(kind, blank + stream.replace(b"\n\n", b"\n\n" + blank)) == outcome(kind, stream)


@pytest.mark.parametrize(("kind", "name"), names("sse"))
def test_events_of_unknown_kinds_say_nothing(kind: str, name: str) -> None:
    stream = transcript(kind, name)
    unknown = b'event: news\ndata: {"type":"some.news","later":[{}]}\n\n'
    assert outcome(kind, unknown + stream.replace(b"\n\n", b"\n\n" + unknown)) == outcome(kind, stream)


def outcome(kind: str, stream: bytes) -> Answer | tuple[Reason, bool]:
    try:
        return named(fold(streamed(kind, [stream])))
    except GatewayError as failure:
        return failure.reason, failure.retryable


def named(answer: Answer) -> Answer:
    """With ids of our own making, which are new every time, made equal."""
    calls = tuple(
        msgspec.structs.replace(call, id="minted") if call.id.startswith("call_") and len(call.id) == 29 else call
        for call in answer.tool_calls
    )
    blocks = tuple(msgspec.structs.replace(block, block=msgspec.Raw(bytes(block.block))) for block in answer.blocks)
    return msgspec.structs.replace(answer, tool_calls=calls, blocks=blocks)


CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"n":1}'}}


def test_a_whole_message_after_its_pieces_is_said_once() -> None:
    said = {"content": "hi there", "reasoning_content": "Hm.", "tool_calls": [CALL]}
    pieces = [{"reasoning_content": "Hm."}, {"content": "hi "}, {"content": "there"}, {"tool_calls": [CALL]}]
    for extra in ({}, {"delta": {}}, {"delta": None}, {"delta": {"content": None}}):
        chunks = [{"choices": [{"index": 0, "delta": piece}]} for piece in pieces]
        last = {"choices": [{"index": 0, "message": said, "finish_reason": "tool_calls", **extra}]}
        result = fold(streamed("openai-chat", [sse(*chunks, last) + b"data: [DONE]\n\n"]))
        assert (result.text, result.reasoning, len(result.tool_calls)) == ("hi there", "Hm.", 1)


def test_a_whole_message_says_what_no_piece_said() -> None:
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": "hi"}}]},
        {"choices": [{"index": 0, "message": {"content": "hi", "tool_calls": [CALL]}, "finish_reason": "stop"}]},
    ]
    result = fold(streamed("openai-chat", [sse(*chunks)]))
    assert (result.text, [call.name for call in result.tool_calls]) == ("hi", ["f"])


@pytest.mark.parametrize("placed", [True, False])
@pytest.mark.parametrize("pieces", [True, False])
@pytest.mark.parametrize("items", [True, False])
def test_items_of_responses_are_said_once_with_or_without_their_pieces(placed: bool, pieces: bool, items: bool) -> None:
    thought = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]}
    said = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "hi"}]}
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}
    spelled = [
        ("response.reasoning_summary_text.delta", "r", "Hm."),
        ("response.output_text.delta", "m", "hi"),
        ("response.function_call_arguments.delta", "fc", "{}"),
    ]
    events: list[dict[str, Any]] = []
    for index, item in enumerate((thought, said, call)):
        at = {"output_index": index} if placed else {}
        name, place, delta = spelled[index]
        if pieces:
            events.append({"type": "response.output_item.added", **at, "item": {**item, "arguments": ""}})
            events.append({"type": name, "item_id": place, **at, "delta": delta})
        if items:
            events.append({"type": "response.output_item.done", **at, "item": item})
    events.append({"type": "response.completed", "response": {"status": "completed", "output": [thought, said, call]}})
    result = fold(streamed("openai-responses", [sse(*events)]))
    assert (result.text, result.reasoning) == ("hi", "Hm.")
    assert [(one.id, one.name, bytes(one.arguments)) for one in result.tool_calls] == [("c", "f", b"{}")]
    assert len(result.blocks) == 3


NAMES: dict[str, list[dict[str, Any]]] = {
    "id first": [
        {"index": 0, "id": "c1"},
        {"index": 0, "function": {"name": "get_weather"}},
        {"index": 0, "function": {"arguments": '{"n":1}'}},
    ],
    "empty first": [
        {"index": 0, "id": "c1", "function": {"name": "", "arguments": ""}},
        {"index": 0, "function": {"name": "get_weather", "arguments": '{"n"'}},
        {"index": 0, "function": {"name": "", "arguments": ":1}"}},
    ],
    "in pieces": [
        {"index": 0, "id": "c1", "function": {"name": "get_"}},
        {"index": 0, "function": {"name": "weather"}},
        {"index": 0, "function": {"arguments": '{"n":1}'}},
    ],
    "growing": [
        {"index": 0, "id": "c1", "function": {"name": "get_"}},
        {"index": 0, "function": {"name": "get_weather"}},
        {"index": 0, "function": {"arguments": '{"n":1}'}},
    ],
    "repeated": [
        {"index": 0, "id": "c1", "function": {"name": "get_weather", "arguments": '{"n"'}},
        {"index": 0, "id": "c1", "function": {"name": "get_weather", "arguments": ":1}"}},
    ],
    "after the arguments": [
        {"index": 0, "id": "c1", "function": {"arguments": '{"n":1}'}},
        {"index": 0, "function": {"name": "get_weather"}},
    ],
    "before the id": [
        {"index": 0, "function": {"name": "get_weather"}},
        {"index": 0, "id": "c1", "function": {"arguments": '{"n":1}'}},
    ],
    "without an index": [
        {"id": "c1"},
        {"function": {"name": "get_weather"}},
        {"function": {"arguments": '{"n":1}'}},
    ],
}


@pytest.mark.parametrize("how", NAMES)
def test_a_call_is_held_until_it_has_its_name(how: str) -> None:
    events = streamed("openai-chat", [called(*NAMES[how])])
    calls = [(one.id, one.name, bytes(one.arguments)) for one in fold(events).tool_calls]
    assert calls == [("c1", "get_weather", b'{"n":1}')]
    started = [event for event in events if isinstance(event, ToolCallStarted)]
    assert started == [ToolCallStarted(0, "c1", "get_weather")]
    assert "".join(event.fragment for event in events if isinstance(event, ToolCallDelta)) == '{"n":1}'


def test_a_call_without_a_name_fails_at_the_end_and_not_before() -> None:
    sent: list[ModelEvent] = []
    with pytest.raises(GatewayError) as failure:
        sent += streamed("openai-chat", [called({"index": 0, "id": "c1", "function": {"arguments": "{}"}})])
    assert failure.value.reason is Reason.UPSTREAM_MALFORMED
    item = {"type": "function_call", "id": "fc", "call_id": "c1", "status": "completed"}
    final = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    late = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "name": "f", "arguments": "{}"}},
        final,
    ]
    assert [call.name for call in fold(streamed("openai-responses", [sse(*late)])).tool_calls] == ["f"]
    with pytest.raises(GatewayError):
        streamed("openai-responses", [sse(late[0], {**late[2], "item": item}, final)])


def test_fragments_of_blocks_side_by_side_follow_their_index() -> None:
    stream = message(
        begin(0, type="tool_use", id="a", name="f", input={}),
        begin(1, type="tool_use", id="b", name="g", input={}),
        spell(0, type="input_json_delta", partial_json='{"to":'),
        spell(1, type="input_json_delta", partial_json='{"from":'),
        spell(0, type="input_json_delta", partial_json='"a"}'),
        spell(1, type="input_json_delta", partial_json='"b"}'),
        stop(1),
        stop(0),
        stop="tool_use",
    )
    result = fold(streamed("anthropic", [stream]))
    assert [(call.id, bytes(call.arguments)) for call in result.tool_calls] == [
        ("a", b'{"to":"a"}'),
        ("b", b'{"from":"b"}'),
    ]
    assert [json.loads(bytes(block.block))["id"] for block in result.blocks] == ["a", "b"]


def test_a_fragment_of_a_block_that_nobody_began_is_a_failure() -> None:
    with pytest.raises(GatewayError) as failure:
        streamed("anthropic", [message(begin(0, type="text", text=""), spell(3, type="text_delta", text="x"))])
    assert failure.value.reason is Reason.UPSTREAM_MALFORMED


HALF_CUT = {
    "anthropic": message(
        begin(0, type="tool_use", id="a", name="f", input={}),
        spell(0, type="input_json_delta", partial_json='{"n":1}'),
        stop(0),
        begin(1, type="tool_use", id="b", name="f", input={}),
        spell(1, type="input_json_delta", partial_json='{"n'),
        stop="max_tokens",
    ),
    "openai-chat": called(
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"n":1}'}},
        {"index": 1, "id": "b", "function": {"name": "f", "arguments": '{"n'}},
        finish="length",
    ),
    "openai-responses": sse(
        {
            "type": "response.incomplete",
            "response": {
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [
                    {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"n":1}'},
                    {"type": "function_call", "call_id": "b", "name": "f", "arguments": '{"n', "status": "incomplete"},
                ],
            },
        }
    ),
}


@pytest.mark.parametrize("kind", HALF_CUT)
def test_of_a_call_that_the_limit_cut_nothing_is_left_and_the_one_before_it_stands(kind: str) -> None:
    result = fold(streamed(kind, [HALF_CUT[kind]]))
    assert result.stop is LIMIT
    assert [call.id for call in result.tool_calls] == ["a"]
    assert len(result.blocks) == (0 if kind == "openai-chat" else 1)


EARTH = "\U0001f30d"
PIECES: dict[str, Any] = {
    "openai-chat": lambda pieces: chat(*({"content": piece} for piece in pieces)),
    "anthropic": lambda pieces: message(
        begin(0, type="text", text=""), *(spell(0, type="text_delta", text=piece) for piece in pieces), stop(0)
    ),
    "openai-responses": lambda pieces: sse(
        *({"type": "response.output_text.delta", "output_index": 0, "delta": piece} for piece in pieces),
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ),
}


@pytest.mark.parametrize("kind", PIECES)
@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["a\ud83c", "\udf0db"], f"a{EARTH}b"),
        (["\ud83c", "\udf0d", "\ud83c", "\udf0d"], EARTH * 2),
        (["a\ud83c", "b"], "a\ufffdb"),
        (["a\ud83c"], "a\ufffd"),
        (["\udf0d"], "\ufffd"),
        (["\ud83c\ud83c", "\udf0d"], f"\ufffd{EARTH}"),
        (["a\ud83cb", "\\ud83c"], "a\ufffdb\\ud83c"),
    ],
)
def test_halves_of_a_character_are_joined_or_replaced(kind: str, pieces: list[str], expected: str) -> None:
    result = fold(streamed(kind, [PIECES[kind](pieces)]))
    assert result.text == expected
    for block in result.blocks:
        assert json.loads(bytes(block.block))["text"] == expected


def test_halves_in_reasoning_and_in_a_whole_body_are_joined_or_replaced() -> None:
    stream = chat({"reasoning_content": "\ud83c"}, {"content": "x"}, {"reasoning_content": "\udf0d"})
    assert fold(streamed("openai-chat", [stream])).reasoning == EARTH
    body = {"choices": [{"message": {"content": f"{EARTH}\ud83c"}, "finish_reason": "stop"}]}
    assert fold(whole("openai-chat", json.dumps(body).encode())).text == f"{EARTH}\ufffd"
    arguments = called({"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a":"\\ud83c"}'}})
    call = fold(streamed("openai-chat", [arguments])).tool_calls[0]
    assert json.loads(bytes(call.arguments)) == {"a": "\ufffd"}


THOUGHTS = [
    ("<think>Hm.</think>hi", "Hm.", "hi"),
    ("\n<think>\nHm.\n</think>\n\nhi", "\nHm.\n", "hi"),
    ("<think></think>hi", "", "hi"),
    ("<think>cut", "cut", ""),
    ("<think>a < b </thin</think>hi", "a < b </thin", "hi"),
    ("hi <think>no</think>", "", "hi <think>no</think>"),
    ("<thin ice", "", "<thin ice"),
    ("<thi", "", "<thi"),
    ("<think>Hm.</think>say <think> and </think>", "Hm.", "say <think> and </think>"),
]


@pytest.mark.parametrize(("said", "thought", "text"), THOUGHTS)
@pytest.mark.parametrize("kind", PIECES)
def test_what_a_model_thinks_aloud_is_told_apart_where_it_is_declared(
    kind: str, said: str, thought: str, text: str
) -> None:
    for size in (1, 2, 3, 5, len(said)):
        stream = PIECES[kind]([said[at : at + size] for at in range(0, len(said), size)])
        result = fold(read(kind, [stream], stream=True, think_tags=True))
        assert (result.reasoning, result.text) == (thought, text)
        assert fold(read(kind, [stream], stream=True)).text == said


def test_usage_that_is_nonsense_is_unknown_and_the_answer_stands() -> None:
    nonsense: list[Any] = [[], "x", 5, {"prompt_tokens": "x", "completion_tokens": -5}, {"input_tokens": 1e300}]
    for usage in nonsense:
        stream = sse({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage})
        assert (
            fold(streamed("openai-chat", [stream])).text,
            fold(streamed("openai-chat", [stream])).usage.output_tokens,
        ) == (
            "hi",
            None,
        )
        said = {"type": "text", "text": "hi"}
        body = json.dumps({"content": [said], "usage": usage, "stop_reason": "end_turn"}).encode()
        assert (fold(whole("anthropic", body)).text, fold(whole("anthropic", body)).usage.input_tokens) == ("hi", None)
        response = {"status": "completed", "output": [], "usage": usage}
        stream = sse({"type": "response.completed", "response": response})
        assert fold(streamed("openai-responses", [stream])).usage.input_tokens is None


@pytest.mark.parametrize(
    ("usage", "whole_input", "cached", "output", "reasoning"),
    [
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 50}}, 60, 50, None, None),
        ({"prompt_tokens": 60, "prompt_tokens_details": {"cached_tokens": 50}}, 60, 50, None, None),
        ({"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 40}}, None, None, 45, 40),
        ({"completion_tokens": 45, "completion_tokens_details": {"reasoning_tokens": 40}}, None, None, 45, 40),
    ],
)
def test_a_part_is_never_more_than_the_whole(
    usage: dict[str, Any], whole_input: int | None, cached: int | None, output: int | None, reasoning: int | None
) -> None:
    stream = sse({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage})
    counted = fold(streamed("openai-chat", [stream])).usage
    assert (counted.input_tokens, counted.cache_read_tokens) == (whole_input, cached)
    assert (counted.output_tokens, counted.reasoning_tokens) == (output, reasoning)


def test_an_answer_has_a_limit_that_is_told_after_what_was_said() -> None:
    out: list[ModelEvent] = []
    reader = AnswerReader(dialect("openai-chat").decoder(), stream=True)
    chunk = sse({"choices": [{"delta": {"content": "x" * 1_000_000}}]})
    with pytest.raises(GatewayError) as failure:
        for _ in range(MAX_ANSWER // 1_000_000 + 2):
            reader.feed(chunk, out)
    assert failure.value.reason is Reason.UPSTREAM_ANSWER_TOO_LARGE
    assert MAX_ANSWER - 2_000_000 < sum(len(event.text) for event in out if isinstance(event, TextDelta)) < MAX_ANSWER
