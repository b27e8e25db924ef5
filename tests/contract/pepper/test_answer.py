"""What comes back, as a stream and as JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import Raw

from crocevia.core.answers import Answer
from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.events import (
    ProviderBlock,
    ReasoningDelta,
    Stopped,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from crocevia.core.messages import ToolCall
from crocevia.core.usage import Usage
from crocevia.doors.pepper import encode
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.pepper.asgi import Exchange, ask, start
from tests.doors.pepper.house import HELLO, PLAIN, USAGE, House, Puppet, house, say, tool

STREAM = HELLO | {"stream": True}
TOOL_USE = Stopped(StopReason.TOOL_USE)


def answers(*steps: Any, model: dict[str, Any] | None = None) -> tuple[Exchange, dict[str, Any]]:
    """The same answer streamed, and as JSON."""

    async def work() -> tuple[Exchange, Exchange]:
        place = house(Puppet(steps), model=model)
        streamed, whole = await ask(place.agent, STREAM), await ask(place.agent, HELLO)
        place.nothing_left()
        return streamed, whole

    streamed, whole = run(work())
    assert streamed.ended and whole.ended
    assert whole.status == 200
    assert whole.headers["content-type"] == "application/json"
    return streamed, whole.json()


@requirement("P-SSE-1", "P-SSE-7")
def test_a_stream_says_what_it_is_and_asks_proxies_to_pass_it_on() -> None:
    streamed, _ = answers(*PLAIN)
    assert streamed.status == 200
    assert streamed.headers == {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "x-request-id": streamed.headers["x-request-id"],
    }


@requirement("P-SSE-2", "P-SSE-4", "P-STOP-1", "P-JSON-1", "P-USE-1")
def test_a_text_answer() -> None:
    streamed, whole = answers(say("perché 🙂", "\n\r\u2028", ""), say(" fine"), [USAGE, Stopped(StopReason.END)])
    events = streamed.events()
    assert [name for name, _ in events] == ["delta", "delta", "done"]
    text = "perché 🙂\n\r\u2028 fine"
    assert "".join(data["text"] for name, data in events if name == "delta") == text
    ending = events[-1][1]
    assert ending == {
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 12,
            "output_tokens": 3,
            "cache_read_input_tokens": None,
            "cache_creation_input_tokens": None,
        },
        "versione": "Pepper 7",
        "novita": None,
        "blocchi": [{"type": "text", "text": text}],
    }
    assert whole == {"content": text, "tool_calls": []} | ending


@requirement("P-SSE-3", "P-SSE-8", "P-JSON-1", "P-BLK-1", "P-STOP-1")
def test_tool_calls_come_complete_with_the_engines_ids() -> None:
    streamed, whole = answers(
        [ToolCallStarted(0, "toolu_01ABC", "get_home_status"), ToolCallDelta(0, "{")],
        [tool("toolu_01ABC"), tool("x y/é", "set_climate", b'{ "a" : 1.50,\n "z": {} }', 1)],
        [TOOL_USE],
    )
    names = [name for name, _ in streamed.events()]
    assert names == ["tool_call", "tool_call", "done"]
    assert b'data: {"id":"toolu_01ABC","name":"get_home_status","arguments":{}}\n' in streamed.body
    assert '{"id":"x y/é","name":"set_climate","arguments":{ "a" : 1.50,  "z": {} }}\n'.encode() in streamed.body
    assert whole["content"] is None
    assert [call["id"] for call in whole["tool_calls"]] == ["toolu_01ABC", "x y/é"]
    assert whole["stop_reason"] == streamed.events()[-1][1]["stop_reason"] == "tool_use"
    assert whole["blocchi"][0] == {"type": "tool_use", "id": "toolu_01ABC", "name": "get_home_status", "input": {}}


@requirement("P-SSE-3")
def test_texts_and_calls_of_one_batch_keep_their_order() -> None:
    streamed, whole = answers([TextDelta("a"), TextDelta("b"), tool(), TextDelta("c"), USAGE, TOOL_USE])
    shape = [(name, data.get("text")) for name, data in streamed.events()]
    assert shape == [("delta", "ab"), ("tool_call", None), ("delta", "c"), ("done", None)]
    assert whole["content"] == "abc"


@requirement("P-BLK-1", "P-JSON-2", "P-SSE-4")
def test_pieces_of_an_engine_travel_untouched() -> None:
    pieces = [b'{"type":"thinking","signature":"=\\/","n":1.0E+2,"thinking":""}', b'{"type":"tool_use","input":{}}']
    streamed, whole = answers(
        say("x"),
        [ProviderBlock("anthropic", Raw(piece)) for piece in pieces],
        [USAGE, Stopped(StopReason.END)],
        model={"novelty": "Ragiona."},
    )
    assert b'"blocchi":[' + b",".join(pieces) + b"]" in streamed.body
    ending = streamed.events()[-1][1]
    assert ending["novita"] == "Ragiona."
    assert {name: whole[name] for name in ending} == ending


@requirement("P-USE-1", "P-JSON-2")
def test_usage_shows_what_the_cache_did_and_null_for_the_unknown() -> None:
    figures = Usage(input_tokens=1840, output_tokens=96, cache_read_tokens=1700, cache_write_tokens=0)
    _, whole = answers(say("x"), [UsageReported(figures), Stopped(StopReason.END)])
    assert whole["usage"] == {
        "input_tokens": 1840,
        "output_tokens": 96,
        "cache_read_input_tokens": 1700,
        "cache_creation_input_tokens": 0,
    }
    _, silent = answers(say("x"), [Stopped(StopReason.END)])
    assert set(silent["usage"].values()) == {None}


@requirement("P-STOP-2")
def test_an_answer_cut_by_max_tokens_is_marked_and_holds_no_half_call() -> None:
    streamed, whole = answers(
        say("lungo"), [ToolCallStarted(0, "c1", "t"), ToolCallDelta(0, '{"path":"a')], [Stopped(StopReason.MAX_TOKENS)]
    )
    assert [name for name, _ in streamed.events()] == ["delta", "done"]
    for ending in (streamed.events()[-1][1], whole):
        assert ending["stop_reason"] == "end_turn"
        assert ending["troncato"] is True
    _, complete = answers(*PLAIN)
    assert "troncato" not in complete


@requirement("P-SSE-2")
def test_long_texts_are_split_below_64_kib() -> None:
    text = "\x01é🙂" * 30_000
    streamed, whole = answers(say(text), [Stopped(StopReason.END)])
    deltas = [frame for frame in streamed.body.split(b"\n\n") if frame.startswith(b"event: delta")]
    assert len(deltas) > 1
    assert max(map(len, deltas)) < 64 * 1024
    assert "".join(json.loads(frame.partition(b"data: ")[2])["text"] for frame in deltas) == text == whole["content"]


@requirement("P-SSE-2")
def test_one_batch_is_one_write() -> None:
    streamed, _ = answers([TextDelta("a"), tool(), TextDelta("b")], say("c"), [TOOL_USE])
    assert len([write for write in streamed.writes if write]) == 3


@requirement("P-SSE-6")
def test_silence_before_the_first_word_sends_the_headers_and_pings() -> None:
    async def work() -> Exchange:
        gate = asyncio.Event()
        place = house(Puppet((gate, *PLAIN)), ping_seconds=0.02)
        exchange, task = start(place.agent, STREAM)
        await exchange.until(lambda: exchange.body.count(b": ping\n\n") >= 3)
        assert exchange.status == 200
        assert place.engine.open == 1
        gate.set()
        await task
        return exchange

    exchange = run(work())
    assert exchange.body.startswith(b": ping\n\n: ping\n\n: ping\n\n")
    assert [name for name, _ in exchange.events()] == ["delta", "delta", "done"]


@requirement("P-SSE-6")
def test_a_ping_comes_between_events_and_never_inside_one() -> None:
    async def work() -> Exchange:
        gate = asyncio.Event()
        place = house(Puppet((say("a"), gate, *PLAIN)), ping_seconds=0.02)
        exchange, task = start(place.agent, STREAM)
        await exchange.until(lambda: exchange.writes.count(b": ping\n\n") >= 2)
        gate.set()
        await task
        return exchange

    exchange = run(work())
    assert exchange.writes[0].startswith(b"event: delta")
    assert all(write.endswith(b"\n\n") for write in exchange.writes if write)


@requirement("P-REQ-2")
@pytest.mark.parametrize("stream", [False, None])
def test_without_stream_the_engine_is_asked_for_one_body(stream: bool | None) -> None:
    place = house()

    async def work() -> None:
        assert (await ask(place.agent, HELLO | {"stream": stream})).json()["content"] == "Ciao."

    run(work())
    assert place.engine.requests[0].options.stream is False


MID_STREAM = [
    (Code.UPSTREAM_FAILED, "errore_ai"),
    (Code.UPSTREAM_TIMEOUT, "errore_ai"),
    (Code.REFUSED, "richiesta_rifiutata"),
    (Code.UNAVAILABLE, "servizio_non_disponibile"),
    (Code.INTERNAL, "servizio_non_disponibile"),
]


@requirement("P-SSE-5", "P-ERR-MID")
@pytest.mark.parametrize(("code", "word"), MID_STREAM)
def test_after_the_first_byte_an_error_is_a_flat_event_and_the_end(code: Code, word: str) -> None:
    place = house(Puppet((say("a"), GatewayError(Reason(code)))))
    exchange = run(ask(place.agent, STREAM))
    name, data = exchange.events()[-1]
    assert (exchange.status, name, exchange.ended) == (200, "error", True)
    assert set(data) == {"message", "code"}
    assert data["code"] == word
    place.nothing_left()


@requirement("P-ERR-MID", "P-ERR-422")
def test_a_refusal_after_text_is_an_error_event() -> None:
    place = house(Puppet((say("a"), [Stopped(StopReason.REFUSAL)])))
    exchange = run(ask(place.agent, STREAM))
    assert exchange.events()[-1][1]["code"] == "richiesta_rifiutata"
    assert place.records.settled[0].outcome == "refused"


@requirement("P-ERR-MID")
def test_a_stream_without_an_end_is_an_error_and_never_a_success() -> None:
    for steps in ((say("a"),), ([ReasoningDelta("mm")],), ()):
        place: House = house(Puppet(steps))
        exchange = run(ask(place.agent, STREAM))
        word = exchange.events()[-1][1]["code"] if exchange.status == 200 else exchange.error()[1]
        assert word == "errore_ai"
        place.nothing_left()


@requirement("P-STOP-2")
def test_an_answer_that_was_cut_after_a_whole_call_asks_for_its_output() -> None:
    call = ToolCall(id="c1", name="f", arguments=Raw(b"{}"))
    for stop in (StopReason.MAX_TOKENS, StopReason.INCOMPLETE):
        for calls, reason in (((call,), "tool_use"), ((), "end_turn")):
            spelled = encode.whole(Answer(tool_calls=calls, stop=stop), ModelSpec(name="m", engine="e"))
            ending = json.loads(spelled)
            assert (ending["stop_reason"], ending["troncato"]) == (reason, True)
