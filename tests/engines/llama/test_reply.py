"""The constrained answer decoder: any split of any answer spells the same."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.engines.llama.reply import ReplyDecoder

characters = st.characters(exclude_categories=["Cs"])


def decode(pieces: list[str]) -> tuple[str, ReplyDecoder]:
    decoder = ReplyDecoder()
    text = "".join(decoder.feed(piece) for piece in pieces)
    return text + decoder.flush(), decoder


def split(text: str, cuts: list[int]) -> list[str]:
    edges = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(edges)]


@given(st.text(characters, min_size=1), st.booleans(), st.lists(st.integers(0, 200)))
def test_a_reply_is_the_same_text_however_it_is_cut(text: str, ascii_only: bool, cuts: list[int]) -> None:
    answer = json.dumps({"reply": text}, ensure_ascii=ascii_only)
    said, decoder = decode(split(answer, cuts))
    assert said == text
    assert decoder.call("c") is None


@given(
    st.text(characters, min_size=1),
    st.dictionaries(st.text(characters), st.recursive(st.integers() | st.text(characters), st.lists, max_leaves=5)),
    st.lists(st.integers(0, 200)),
)
def test_a_call_is_the_same_however_it_is_cut_and_says_nothing(
    name: str, args: dict[str, object], cuts: list[int]
) -> None:
    answer = json.dumps({"name": name, "arguments": args})
    said, decoder = decode(split(answer, cuts))
    call = decoder.call("c1")
    assert said == ""
    assert call is not None
    assert (call.id, call.name) == ("c1", name)
    assert json.loads(bytes(call.arguments)) == args


@given(st.text(characters, min_size=1), st.integers(1, 400))
def test_a_cut_reply_has_given_a_prefix_of_its_text(text: str, length: int) -> None:
    answer = json.dumps({"reply": text}, ensure_ascii=False)
    said, _ = decode([answer[:length]])
    assert text.startswith(said)


@given(
    st.sampled_from(["", '{"reply": "', '{"name": "']), st.text(st.sampled_from('\\u"d83e0z{}: ')), st.text(characters)
)
def test_no_junk_makes_the_decoder_fail(head: str, junk: str, more: str) -> None:
    _, decoder = decode([head, junk, more])
    decoder.call("c")


def test_text_streams_before_the_answer_is_complete() -> None:
    decoder = ReplyDecoder()
    assert [decoder.feed(piece) for piece in ('{"re', 'ply": "', "Good ", "mor\\", "nning", '"', "}")] == [
        "",
        "",
        "Good ",
        "mor",
        "\nning",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ('{"reply": "a\\"b"}', 'a"b'),
        ('{"reply": "\\\\n"}', "\\n"),
        ('{"reply": "\\u00e8 \\n\\t\\/"}', "è \n\t/"),
        ('{"reply": "\\ud83d\\ude00!"}', "😀!"),
        ('{"reply": "\\ud83d!"}', "\ufffd!"),
        ('{"reply": "\\ud83d\\n"}', "\ufffd\n"),
        ('{"reply": "\\ud83d"}', "\ufffd"),
        ('{"reply": "\\ud83d\\ud83d\\ude00"}', "\ufffd😀"),
        ('{"reply": "\\ude00"}', "\ufffd"),
        ('{"reply": "\\ud83d\\u0041"}', "\ufffdA"),
        ('\n {\n  "reply" :\n "x" \n}\n', "x"),
        ('{"reply": "x"} and more "words"', "x"),
    ],
)
def test_escapes(answer: str, text: str) -> None:
    assert decode([answer])[0] == text
    assert decode(list(answer))[0] == text


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "t", "arguments": {"a": ',
        '{"name": "t"}',
        '{"name": "t", "arguments": []}',
        '{"name": "t", "arguments": null}',
        '{"name": "t", "argu',
        '{"name": "t", "arguments": {}} trailing',
        "",
        "{}",
        '{"reply": "name"}',
    ],
)
def test_what_is_not_a_complete_call_is_no_call(answer: str) -> None:
    assert decode(list(answer))[1].call("c") is None


def test_arguments_keep_their_spelling() -> None:
    _, decoder = decode(['{"name":"t","arguments": {"a": 1.50, "b":"\\u00e8"} }'])
    call = decoder.call("c")
    assert call is not None
    assert bytes(call.arguments) == b'{"a": 1.50, "b":"\\u00e8"}'
