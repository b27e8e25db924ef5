"""Ids that are derived: the same again for the same thing, another for every other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.ids import is_id, ulid
from crocevia.core.turn.ids import derive, event_id

moments = st.integers(0, 2**48 - 1)


@given(moments, st.sets(st.integers(1, 10**9), max_size=50))
def test_events_of_a_chat_have_ids_of_their_own_and_always_the_same(at: int, seqs: set[int]) -> None:
    epoch = ulid()
    ids = {event_id(epoch, seq, at) for seq in seqs}
    assert len(ids) == len(seqs)
    assert ids == {event_id(epoch, seq, at) for seq in seqs}
    assert all(is_id(one, "evt") for one in ids)


def test_the_same_place_in_two_chats_has_two_ids() -> None:
    assert len({event_id(ulid(), 1, 1) for _ in range(1_000)}) == 1_000


@given(moments, moments)
def test_ids_sort_by_their_moment(one: int, other: int) -> None:
    epoch = ulid()
    for make in (lambda at: event_id(epoch, 1, at), lambda at: derive("tc", at, "x")):
        first, second = make(one), make(other)
        assert one == other or (first < second) == (one < other)
