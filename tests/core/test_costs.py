"""Costs are exact, and unknown until everything is priced."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.costs import plain, usage_cost

AMOUNTS = st.decimals(min_value=0, max_value=10**12, places=9, allow_nan=False, allow_infinity=False)
SPELLED = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]+)?")


@given(AMOUNTS)
def test_an_amount_is_spelled_plainly_and_exactly(amount: Decimal) -> None:
    text = plain(amount)
    assert SPELLED.fullmatch(text) and Decimal(text) == amount


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", "0"), ("0.000", "0"), ("1E+3", "1000"), ("100", "100"), ("1E-9", "0.000000001"), ("-0", "0")],
)
def test_exponents_and_idle_zeros_are_not_spelled(amount: str, text: str) -> None:
    assert plain(Decimal(amount)) == text


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity", "-0.01"])
def test_what_is_no_amount_is_refused(amount: str) -> None:
    with pytest.raises(ValueError):
        plain(Decimal(amount))


@given(
    st.dictionaries(st.sampled_from(["USD", "EUR", "CHF"]), AMOUNTS),
    st.integers(0, 9),
    st.integers(0, 9),
    st.booleans(),
)
def test_totals_are_there_exactly_when_nothing_is_open(
    priced: dict[str, Decimal], pending: int, settled: int, closed: bool
) -> None:
    cost = usage_cost(priced, invocations=pending + settled, pending=pending, closed=closed, basis="mixed", as_of=1.0)
    complete = closed and pending == 0
    assert (cost.status == "complete") is complete
    assert (cost.totals is not None) is complete
    assert {part.currency: Decimal(part.amount) for part in cost.priced_subtotals} == priced


def test_more_pending_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError):
        usage_cost({}, invocations=1, pending=2, closed=True, basis="none", as_of=0.0)
