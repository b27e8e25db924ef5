"""Sums of money are the decimals that were added."""

from __future__ import annotations

from decimal import Decimal
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.turn.plan import Totals
from crocevia.core.usage import add_usd

NANOS = st.lists(st.integers(0, 10**13), min_size=1, max_size=30)


@given(NANOS)
def test_a_sum_of_costs_is_written_without_binary_dust(nanos: list[int]) -> None:
    summed = reduce(add_usd, (amount / 10**9 for amount in nanos))
    assert Decimal(repr(summed)) == Decimal(sum(nanos)).scaleb(-9)


def test_totals_of_turns_add_up_exactly() -> None:
    total = reduce(Totals.__add__, [Totals(cost_usd=0.000035)] * 3)
    assert repr(total.cost_usd) == "0.000105"
