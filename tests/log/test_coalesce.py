from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crocevia.log import Coalescer, Piece
from crocevia.log.coalesce import BEGINNING, SIZE, STEADY, WINDOW


def test_the_first_token_of_each_kind_goes_out_at_once() -> None:
    coalescer = Coalescer()
    assert coalescer.add("reasoning", "hm", 0.0) == [Piece("reasoning", "hm")]
    assert coalescer.add("text", "A", 0.001) == [Piece("text", "A")]
    assert coalescer.due is None


def test_later_tokens_wait_for_the_window() -> None:
    coalescer = Coalescer()
    coalescer.add("text", "A", 0.0)
    assert coalescer.add("text", "B", 0.001) == []
    assert coalescer.due == 0.001 + WINDOW
    assert coalescer.add("text", "C", 0.002) == []
    assert coalescer.add("text", "D", 0.001 + WINDOW) == [Piece("text", "BCD")]


def test_a_long_answer_is_told_ten_times_a_second() -> None:
    coalescer, told = Coalescer(), 0
    for millisecond in range(0, 10_000, 5):
        told += len(coalescer.add("text", "word ", millisecond / 1000))
    assert BEGINNING / WINDOW * 0.8 < told < BEGINNING / WINDOW + 9 / STEADY + 2


def test_what_a_provider_says_at_once_is_several_pieces() -> None:
    coalescer = Coalescer()
    said = coalescer.add("text", "x" * 25_000, 0.0)
    assert [len(piece.text) for piece in said] == [10_000, 10_000, 5_000]


def test_four_kilobytes_do_not_wait() -> None:
    coalescer = Coalescer()
    coalescer.add("text", "A", 0.0)
    assert coalescer.add("text", "è" * (SIZE // 2), 0.001) == [Piece("text", "è" * (SIZE // 2))]


def test_another_kind_flushes_what_is_held_so_that_the_order_stays() -> None:
    coalescer = Coalescer()
    coalescer.add("text", "A", 0.0)
    coalescer.add("reasoning", "r", 0.0)
    assert coalescer.add("text", "B", 0.001) == []
    assert coalescer.add("reasoning", "s", 0.001) == [Piece("text", "B")]
    assert coalescer.flush() == [Piece("reasoning", "s")]
    assert coalescer.flush() == []


@given(st.lists(st.tuples(st.sampled_from(("text", "reasoning")), st.text(max_size=9), st.floats(0, 0.02))))
def test_nothing_is_lost_doubled_or_reordered_and_nothing_waits_longer_than_the_window(
    tokens: list[tuple[str, str, float]],
) -> None:
    coalescer, now = Coalescer(), 0.0
    out: list[Piece] = []
    for kind, text, pause in tokens:
        now += pause
        if coalescer.due is not None and coalescer.due <= now:
            out += coalescer.flush()
        out += coalescer.add(kind, text, now)  # type: ignore[arg-type]
        assert coalescer.due is None or now < coalescer.due <= now + WINDOW
    out += coalescer.flush()

    def joined(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(kind, letter) for kind, text in pieces for letter in text]

    assert joined([(p.kind, p.text) for p in out]) == joined([(kind, text) for kind, text, _ in tokens])
    assert all(piece.text for piece in out)
