from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.errors import Code, GatewayError
from crocevia.engines.upstream.sse import SseDecoder, SseEvent


def decode(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def data_of(*chunks: bytes) -> list[bytes]:
    return [event.data for event in decode(*chunks)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [(b"", b"a"), (b"", b"b")]),
        (b"data:a\n\n", [(b"", b"a")]),
        (b"data:  a \n\n", [(b"", b" a ")]),
        (b"data\n\n", [(b"", b"")]),
        (b"data: a\ndata: b\ndata:\n\n", [(b"", b"a\nb\n")]),
        (b"event: x\ndata: a\n\n", [(b"x", b"a")]),
        (b"data: a\nevent: x\nid: 7\nretry: 9\nunknown: y\n\n", [(b"x", b"a")]),
        (b"event: x\n\ndata: a\n\n", [(b"", b"a")]),
        (b": ping\n\ndata: a\n: inside\n\n", [(b"", b"a")]),
        (b"\n\n\n\ndata: a\n\n\n\n\ndata: b\n\n", [(b"", b"a"), (b"", b"b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"", b"a"), (b"", b"b")]),
        (b"data: a\r\rdata: b\r\r", [(b"", b"a"), (b"", b"b")]),
        (b"data: a\r\n\ndata: b\n\r\n", [(b"", b"a"), (b"", b"b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [(b"", b"a")]),
        (b"data: \xef\xbb\xbfa\n\n", [(b"", b"\xef\xbb\xbfa")]),
        ("data: perché 🙂\n\n".encode(), [(b"", "perché 🙂".encode())]),
        (b"data: a\n\ndata: unfinished\n", [(b"", b"a")]),
        (b"data: a:b: c\n\n", [(b"", b"a:b: c")]),
        (b"database: a\n\n", []),
    ],
)
def test_a_stream_gives_its_events_whole_or_byte_by_byte(stream: bytes, expected: list[tuple[bytes, bytes]]) -> None:
    assert decode(stream) == expected
    assert decode(*(stream[i : i + 1] for i in range(len(stream)))) == expected


pieces = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"event: x",
        b": c",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\r\n\r\n",
        b"a",
        "è🙂".encode(),
        b" ",
        b":",
    ]
)
streams = st.tuples(st.sampled_from([b"", b"\xef\xbb\xbf"]), st.lists(pieces, max_size=40)).map(
    lambda parts: parts[0] + b"".join(parts[1])
)


@given(stream=streams, cuts=st.lists(st.integers(0, 200), max_size=12))
def test_any_split_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    borders = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    chunks = [stream[start:end] for start, end in pairwise(borders)]
    assert decode(*chunks) == decode(stream)


@given(stream=streams)
def test_the_events_are_those_of_a_line_by_line_reading_of_the_standard(stream: bytes) -> None:
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    expected, name, data = [], b"", []
    for line in text.split(b"\n")[:-1]:
        field, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if not line:
            if data:
                expected.append((name, b"\n".join(data)))
            name, data = b"", []
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    assert decode(stream) == expected


@given(
    items=st.lists(
        st.text(alphabet=st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=30), max_size=10
    )
)
def test_what_is_written_as_events_is_read_back(items: list[str]) -> None:
    stream = b"".join(b"data: %b\n\n" % item.encode() for item in items)
    assert data_of(stream) == [item.encode() for item in items]


def test_an_event_is_out_as_soon_as_its_blank_line_is_in_even_when_it_ends_in_cr() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r\n\r") == [(b"", b"a")]
    assert decoder.feed(b"\ndata: b\n\n") == [(b"", b"b")]


def test_a_five_megabyte_line_in_small_reads_is_one_event_and_takes_linear_time() -> None:
    line = b"x" * (5 * 2**20)
    stream = b"data: " + line + b"\n\n"
    started = time.process_time()
    assert data_of(*(stream[i : i + 1024] for i in range(0, len(stream), 1024))) == [line]
    # Rescanning the buffer at each of the 5,120 reads would pass over 13 GB.
    assert time.process_time() - started < 2


@pytest.mark.parametrize("chunk", [7, 64, 10_000])
def test_an_event_beyond_the_limit_is_refused_while_it_arrives(chunk: int) -> None:
    stream = b"data: ok\n\ndata: " + b"x" * 500 + b"\n\n"
    decoder = SseDecoder(limit=100)
    with pytest.raises(GatewayError) as failure:
        for start in range(0, len(stream), chunk):
            decoder.feed(stream[start : start + chunk])
    assert failure.value.code is Code.UPSTREAM_FAILED
    assert SseDecoder(limit=6 + 100).feed(b"data: " + b"x" * 100 + b"\n\n")


def test_a_last_event_without_its_blank_line_counts_only_when_its_lines_are_complete() -> None:
    decoder = SseDecoder()
    decoder.feed(b"data: a\n\ndata: [DONE]\n")
    assert decoder.flush() == [(b"", b"[DONE]")]
    decoder.feed(b'data: {"cut')
    assert decoder.flush() == []


def test_bytes_that_are_no_characters_become_replacement_characters_and_nothing_else_changes() -> None:
    decoder = SseDecoder()
    events = decoder.feed("data: perché ".encode() + b"\xff\xe2\x82 no\n\n" + b'data: {"a":"\xc3"}\n\n')
    assert [event.data.decode() for event in events] == ["perché �� no", '{"a":"�"}']


@given(st.binary(max_size=200))
def test_what_comes_out_is_always_utf_8(noise: bytes) -> None:
    decoder = SseDecoder()
    for event in [*decoder.feed(b"data: " + noise + b"\n\n"), *decoder.flush()]:
        event.data.decode()
        event.name.decode()
