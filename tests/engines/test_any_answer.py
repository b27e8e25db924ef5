"""Whatever a provider sends, in whatever order: events as they are promised, or one failure. Over every dialect."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from crocevia.core.calls import ModelRequest
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import (
    ModelEvent,
    ProviderBlock,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
)
from crocevia.core.images import ImageRequest
from crocevia.core.messages import Tool, user
from crocevia.engines.llama.exchange import LlamaExchange
from crocevia.engines.llama.worker import LlamaSettings, Worker
from crocevia.engines.openai.embeddings import _vectors
from crocevia.engines.openai.images import _result

from .dialects import BASES, names, read, transcript

KINDS = sorted(BASES)
STREAMS = names("sse")
TOOL = Tool(name="f", description="", parameters=Raw(b'{"type":"object"}'))
BODIES = names("json")
JUNK = st.sampled_from(
    """null true 0 -5 3.5 1e30 123456789012345678901234567890 "" "x" "\\ud83c" [] [1] {} {"x":1} [[]] [null]""".split()  # noqa: SIM905
).map(json.loads)


def told(kind: str, data: list[bytes], *, stream: bool = True, think_tags: bool = False) -> list[ModelEvent] | None:
    """The events, which keep their promises; None for a failure that is one of ours."""
    try:
        events = read(kind, data, stream=stream, think_tags=think_tags)
    except GatewayError as failure:
        assert failure.code.value.startswith("upstream_") or failure.code.value in ("refused", "unavailable")
        return None
    started: set[int] = set()
    for place, event in enumerate(events):
        if isinstance(event, Stopped):
            assert place == len(events) - 1
        elif isinstance(event, ToolCallStarted):
            assert event.index not in started and event.id and event.name
            started.add(event.index)
            event.name.encode()
        elif isinstance(event, ToolCallDelta):
            assert event.index in started and event.fragment
            event.fragment.encode()
        elif isinstance(event, ToolCallDone):
            assert event.index in started
            assert isinstance(json.loads(bytes(event.call.arguments)), dict)
        elif isinstance(event, ProviderBlock):
            json.loads(bytes(event.block))
        elif isinstance(event, TextDelta | ReasoningDelta):
            assert event.text
            event.text.encode()
    assert isinstance(events[-1], Stopped)
    return events


def events_of(kind: str, name: str) -> list[bytes]:
    return [piece + b"\n\n" for piece in transcript(kind, name).split(b"\n\n") if piece.strip()]


@given(case=st.sampled_from(STREAMS), data=st.data())
def test_bytes_that_were_damaged_lost_or_repeated(case: tuple[str, str], data: st.DataObject) -> None:
    stream = bytearray(transcript(*case))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream) - 1))
        stream[at : at + data.draw(st.sampled_from([0, 1, 1, 9]))] = data.draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b"\\ud83c", b"\\udf0d", b"\xff", b"\n\n", b"\r", b'"']))
        )
    if data.draw(st.booleans()):
        del stream[data.draw(st.integers(0, len(stream))) :]  # the connection was cut
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    reads = [bytes(stream[start:end]) for start, end in pairwise([0, *places, len(stream)])]
    told(case[0], reads, stream=data.draw(st.booleans()))


@given(case=st.sampled_from(STREAMS), data=st.data())
def test_events_in_another_order_twice_or_not_at_all(case: tuple[str, str], data: st.DataObject) -> None:
    kind, name = case
    events = events_of(kind, name) + data.draw(
        st.sampled_from([[], *(events_of(*other) for other in STREAMS if other[0] == kind)])
    )
    played = data.draw(st.lists(st.sampled_from(events), max_size=2 * len(events)))
    told(kind, played, think_tags=data.draw(st.booleans()))


@given(case=st.sampled_from(STREAMS), data=st.data())
def test_a_value_that_is_missing_foreign_or_of_another_type(case: tuple[str, str], data: st.DataObject) -> None:
    kind, name = case
    events = []
    for event in events_of(kind, name):
        head, found, spelled = event.partition(b"data: ")
        if found and spelled.startswith(b"{") and data.draw(st.booleans()):
            whole = json.loads(spelled)
            _damage(whole, data)
            spelled = json.dumps(whole).encode() + b"\n\n"
        events.append(head + found + spelled)
    told(kind, events)


@given(case=st.sampled_from(BODIES), data=st.data(), stream=st.booleans())
def test_a_body_with_a_value_that_is_missing_foreign_or_of_another_type(
    case: tuple[str, str], data: st.DataObject, stream: bool
) -> None:
    whole = json.loads(transcript(*case, "json"))
    for _ in range(data.draw(st.integers(1, 3))):
        _damage(whole, data)
    told(case[0], [json.dumps(whole).encode()], stream=stream)


@given(kind=st.sampled_from(KINDS), data=st.lists(st.binary(max_size=40), max_size=5), stream=st.booleans())
def test_bytes_that_nobody_would_send(kind: str, data: list[bytes], stream: bool) -> None:
    told(kind, data, stream=stream)


@pytest.mark.parametrize(("kind", "name"), BODIES)
def test_a_body_is_known_by_its_bytes_and_so_is_a_stream(kind: str, name: str) -> None:
    for blank in (b"", b"\xef\xbb\xbf", b" \r\n\n"):
        body = blank + transcript(kind, name, "json")
        single = [body[at : at + 1] for at in range(len(body))]
        assert told(kind, [body], stream=True) == told(kind, single, stream=True)
        assert (told(kind, [body], stream=True) is None) == (told(kind, [body], stream=False) is None)
        stream = blank + transcript(kind, name)
        single = [stream[at : at + 1] for at in range(len(stream))]
        assert told(kind, single, stream=False) == told(kind, [stream], stream=True)


def _damage(node: Any, data: st.DataObject) -> None:
    """Put junk somewhere into a JSON value, take something out, or add what nobody knows."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if isinstance(node[key], dict | list) and node[key] and data.draw(st.integers(0, 3)):
            node = node[key]
            continue
        how = data.draw(st.sampled_from(["junk", "lost", "foreign"]))
        if how == "junk":
            node[key] = data.draw(JUNK)
        elif how == "lost":
            del node[key]
        elif isinstance(node, dict):
            node["later_field"] = data.draw(JUNK)
        return


@given(data=st.data(), tools=st.booleans())
def test_whatever_the_embedded_model_s_server_says(data: st.DataObject, tools: bool) -> None:
    """Its exchange takes event by event; the socket is nothing to it."""
    request = ModelRequest(model="", messages=(user("hi"),), tools=(TOOL,) if tools else ())
    exchange = LlamaExchange(request, cast("Worker", None), LlamaSettings(), 0.0, 0.0)
    said = data.draw(
        st.sampled_from(['{"reply":"hi \\ud83d"', '{"name":"f","arguments":{"a":1}}', "{", "hi", "\ud83c"])
    )
    chunks: list[Any] = [{"choices": [{"delta": {"content": piece}}]} for piece in said]
    chunks.append({"choices": [{"delta": {}, "finish_reason": data.draw(st.sampled_from(["stop", "length", "odd"]))}]})
    chunks.append({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
    for chunk in chunks:
        if data.draw(st.booleans()):
            _damage(chunk, data)
    lines = [json.dumps(chunk).encode() for chunk in chunks] + [b"", b"[]", b"\xff", b"[DONE]"]
    out: list[ModelEvent] = []
    try:
        for line in [*data.draw(st.lists(st.sampled_from(lines))), b"[DONE]"]:
            if not exchange.stopped:
                exchange._take(line, out)
    except GatewayError as failure:
        assert failure.code.value.startswith("upstream_")
        return
    assert exchange.stopped and isinstance(out[-1], Stopped)


@given(data=st.data())
def test_a_service_s_answer_with_a_value_that_is_missing_foreign_or_of_another_type(data: st.DataObject) -> None:
    vectors = {"data": [{"index": 0, "embedding": [1.0, 2]}], "usage": {"prompt_tokens": 3}}
    pictures = {"data": [{"b64_json": "iVBORw0KGgo="}], "usage": {"input_tokens": 1}, "output_format": "png"}
    for _ in range(data.draw(st.integers(0, 2))):
        _damage(vectors, data)
        _damage(pictures, data)
    number = data.draw(st.sampled_from(["1e39", "-1e308", "1e400", "NaN", "1"]))
    body = json.dumps(vectors).replace("1.0", number).encode()
    try:
        found = _vectors(body, 1)
        assert found.tokens is None or 0 <= found.tokens < 10**10
    except GatewayError as failure:
        assert failure.reason is Reason.UPSTREAM_MALFORMED
    try:
        made = _result(json.dumps(pictures).encode(), ImageRequest(model="m", prompt="p"), ())
        assert made.images[0].media_type in ("image/png", "image/jpeg", "image/webp")
    except GatewayError as failure:
        assert failure.reason is Reason.UPSTREAM_MALFORMED
