"""Costs are exact, and unknown until everything is priced."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.costs import plain, reconciled, usage_cost

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


@given(st.lists(AMOUNTS, max_size=6), st.data())
def test_later_prices_complete_a_scope_in_any_steps_and_are_never_lost(
    prices: list[Decimal], data: st.DataObject
) -> None:
    known = Decimal("0.5")
    cost = usage_cost(
        {"USD": known}, invocations=len(prices) + 1, pending=len(prices), closed=True, basis="calculated", as_of=1.0
    )
    waiting = dict(enumerate(prices, 1))
    while waiting:
        some = data.draw(st.sets(st.sampled_from(sorted(waiting)), min_size=1))
        before, late = cost, {which: waiting.pop(which) for which in some}
        cost = reconciled(before, late, "USD", 2.0)
        known += sum(late.values())
        assert (cost.revision, cost.as_of) == (before.revision + 1, 2.0)
        assert cost.pending_invocation_count == len(waiting)
        assert (cost.totals is not None) is (not waiting)
        assert [Decimal(part.amount) for part in cost.priced_subtotals] == [known]
    assert reconciled(cost, {}, "USD", 9.0) is cost


@pytest.mark.parametrize(("late", "basis", "after"), [(0, "none", "calculated"), (1, "reported", "mixed")])
def test_a_later_price_is_a_calculation(late: int, basis: str, after: str) -> None:
    cost = usage_cost({}, invocations=2, pending=2, closed=True, basis=basis, as_of=1.0)  # type: ignore[arg-type]
    assert reconciled(cost, {late: Decimal(1)}, "USD", 2.0).basis == after


def test_a_call_is_priced_once_and_only_if_it_is_of_the_scope() -> None:
    cost = usage_cost({}, invocations=2, pending=2, closed=True, basis="none", as_of=0.0)
    once = reconciled(cost, {1: Decimal(1)}, "USD", 1.0)
    for wrong in (1, 2, -1):
        with pytest.raises(ValueError):
            reconciled(once, {wrong: Decimal(1)}, "USD", 2.0)
