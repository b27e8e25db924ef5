from __future__ import annotations

import re
import time

import pytest

from crocevia.core import ids
from crocevia.core.ids import is_id, new_id, ulid


def test_an_id_is_a_prefix_and_a_lower_case_ulid() -> None:
    assert re.fullmatch(r"usr_[0-7][0-9a-hjkmnp-tv-z]{25}", new_id("usr"))
    assert len({ulid() for _ in range(10_000)}) == 10_000


def test_ids_sort_by_their_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_last", 0)
    made = []
    for millisecond in (0, 1, 31, 32, 1023, 1024, 2**40, 2**48 - 1):
        monkeypatch.setattr(time, "time_ns", lambda at=millisecond: at * 1_000_000)
        made.append(ulid())
    assert made == sorted(made)


def test_ids_of_one_millisecond_sort_in_the_order_of_birth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_last", 0)
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    made = [ulid() for _ in range(5_000)]
    assert made == sorted(made) and len(set(made)) == 5_000


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("usr_01m8pct9gxemwttpcfwzf08fkc", True),
        ("usr_01M8PCT9GXEMWTTPCFWZF08FKC", True),
        ("wsp_01m8pct9gxemwttpcfwzf08fkc", False),
        ("usr_81m8pct9gxemwttpcfwzf08fkc", False),
        ("usr_01m8pct9gxemwttpcfwzf08fki", False),
        ("usr_01m8pct9gxemwttpcfwzf08fk", False),
        ("usr_01m8pct9gxemwttpcfwzf08fkc\n", False),
        ("usr01m8pct9gxemwttpcfwzf08fkc", False),
        ("", False),
    ],
)
def test_an_id_of_another_kind_or_form_is_not_one(value: str, known: bool) -> None:
    assert is_id(value, "usr") is known
