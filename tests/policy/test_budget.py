"""The ledger: reserved before, settled after, never spent twice, nothing left behind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crocevia.core.errors import Code, GatewayError
from crocevia.policy.admission import Admission, Permit
from crocevia.policy.budget import Budget, Ledger, Reservation
from crocevia.policy.periods import day_of

NOON = 1_793_000_000.0  # a day on which clocks change in Rome is near
ROME = "Europe/Rome"


def refused(ledger: Ledger, budget: Budget, estimate: int, now: float = NOON) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        ledger.reserve("casa", budget, estimate, now)
    assert caught.value.code is Code.BUDGET_EXHAUSTED
    assert caught.value.retry_after is not None and caught.value.retry_after >= 1
    return caught.value


def test_what_does_not_fit_beside_what_is_held_is_refused_until_it_does() -> None:
    ledger, budget = Ledger(), Budget(daily=100)
    first = ledger.reserve("casa", budget, 80, NOON)
    assert refused(ledger, budget, 30).retry_after == 1
    first.settle(10)
    second = ledger.reserve("casa", budget, 90, NOON)
    assert ledger.status("casa", budget, NOON).spent == 10
    second.release()
    assert ledger.status("casa", budget, NOON).reserved == 0


def test_a_budget_smaller_than_any_estimate_still_serves_one_call_at_a_time() -> None:
    ledger, budget = Ledger(), Budget(daily=12)
    calls = 0
    for _ in range(20):
        try:
            hold = ledger.reserve("casa", budget, 1000, NOON)
        except GatewayError:
            break
        refused(ledger, budget, 1000)
        refused(ledger, budget, 1)
        hold.settle(10)
        calls += 1
    assert calls == 2
    assert ledger.status("casa", budget, NOON).spent == 20


def test_the_wait_is_exactly_until_the_next_day_of_the_zone() -> None:
    ledger, budget = Ledger(), Budget(daily=5, timezone=ROME)
    ledger.reserve("casa", budget, 5, NOON).settle(5)
    wait = refused(ledger, budget, 1).retry_after or 0
    assert day_of(NOON + wait, ROME).label > day_of(NOON, ROME).label
    refused(ledger, budget, 1, NOON + wait - 1.001)
    ledger.reserve("casa", budget, 5, NOON + wait)


def test_a_call_belongs_to_the_day_it_was_admitted_on() -> None:
    ledger, budget = Ledger(), Budget(daily=10)
    late = ledger.reserve("casa", budget, 8, NOON)
    tomorrow = day_of(NOON, "UTC").until
    fresh = ledger.reserve("casa", budget, 10, tomorrow)
    late.settle(9)
    assert ledger.status("casa", budget, tomorrow).spent == 0
    fresh.settle(10)
    assert ledger.reserved() == 0


def test_a_clock_that_steps_back_opens_no_second_budget() -> None:
    ledger, budget = Ledger(), Budget(daily=10)
    ledger.reserve("casa", budget, 10, NOON).settle(10)
    refused(ledger, budget, 1, NOON - 200_000)


@pytest.mark.parametrize("ahead", [100_000, 40 * 86_400])
def test_the_day_follows_a_clock_that_jumped_ahead_and_came_back(ahead: float) -> None:
    ledger, budget = Ledger(), Budget(daily=10, soft=3)
    ledger.reserve("casa", budget, 4, NOON).settle(4)
    assert ledger.cross("casa", budget, NOON) is not None
    ledger.reserve("casa", budget, 6, NOON + ahead).settle(6)
    back = ledger.status("casa", budget, NOON + 60)
    assert (back.day, back.spent) == (day_of(NOON, "UTC"), 10)
    assert ledger.cross("casa", budget, NOON + 60) is None
    refused(ledger, budget, 1, NOON + 60)
    tomorrow = day_of(NOON, "UTC").until
    assert ledger.status("casa", budget, tomorrow).spent == 0


def test_ending_twice_counts_once() -> None:
    ledger, budget = Ledger(), Budget(daily=10)
    hold = ledger.reserve("casa", budget, 5, NOON)
    assert hold.settle(3) is not None
    assert hold.settle(3) is None
    hold.release()
    standing = ledger.status("casa", budget, NOON)
    assert (standing.spent, standing.reserved) == (3, 0)


def test_free_calls_go_through_an_exhausted_budget() -> None:
    ledger, budget = Ledger(), Budget(daily=10)
    ledger.reserve("casa", budget, 10, NOON).settle(30)
    ledger.reserve("casa", budget, 0, NOON).settle(0)


def test_a_correction_reopens_an_exhausted_day_and_cannot_make_credit() -> None:
    ledger, budget = Ledger(), Budget(daily=10)
    ledger.remember("casa", budget, 12_000, NOON)
    refused(ledger, budget, 1)
    ledger.correct("casa", budget, -11_995, NOON)
    assert ledger.status("casa", budget, NOON).spent == 5
    ledger.correct("casa", budget, -99_999, NOON)
    assert ledger.status("casa", budget, NOON).spent == 0


def test_the_soft_threshold_is_told_once_a_day() -> None:
    ledger, budget = Ledger(), Budget(daily=10, soft=4)
    ledger.reserve("casa", budget, 3, NOON).settle(3)
    assert ledger.cross("casa", budget, NOON) is None
    ledger.reserve("casa", budget, 3, NOON).settle(3)
    crossed = ledger.cross("casa", budget, NOON)
    assert crossed is not None and crossed.spent == 6
    assert ledger.cross("casa", budget, NOON) is None
    tomorrow = day_of(NOON, "UTC").until
    ledger.reserve("casa", budget, 5, tomorrow).settle(5)
    assert ledger.cross("casa", budget, tomorrow) is not None


def test_a_zone_that_changes_takes_today_along() -> None:
    ledger, budget = Ledger(), Budget(daily=10)
    ledger.reserve("casa", budget, 10, NOON).settle(10)
    there = Budget(daily=10, timezone="Asia/Tokyo")
    ledger.move("casa", there, NOON)
    refused(ledger, there, 1)
    assert ledger.status("casa", there, NOON).day == day_of(NOON, "Asia/Tokyo")


class Days(RuleBasedStateMachine):
    """Calls of three tenants come, end in any order, twice, over midnight, with any cost up to their estimate."""

    @initialize(daily=st.integers(1, 200))
    def begin(self, daily: int) -> None:
        self.ledger, self.slots = Ledger(), Admission()
        self.budget = Budget(daily=daily, timezone=ROME)
        self.now = NOON
        self.open: list[tuple[str, Reservation, Permit, int, str]] = []
        self.spent: dict[tuple[str, str], int] = {}

    def _today(self) -> str:
        return day_of(self.now, ROME).label

    @rule(tenant=st.sampled_from("abc"), estimate=st.integers(0, 120))
    def admit(self, tenant: str, estimate: int) -> None:
        standing = self.ledger.status(tenant, self.budget, self.now)
        try:
            hold = self.ledger.reserve(tenant, self.budget, estimate, self.now)
        except GatewayError:
            left = (self.budget.daily or 0) - standing.spent - standing.reserved
            assert left < estimate and (left <= 0 or standing.reserved)
            assert self.ledger.status(tenant, self.budget, self.now) == standing
            return
        try:
            permit = self.slots.admit(tenant, hourly=None, concurrency=3, now=self.now)
        except GatewayError:
            hold.release()
            assert self.ledger.status(tenant, self.budget, self.now) == standing
            return
        self.open.append((tenant, hold, permit, estimate, self._today()))

    @precondition(lambda self: bool(self.open))
    @rule(data=st.data())
    def end(self, data: Any) -> None:
        tenant, hold, permit, estimate, day = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        cost = data.draw(st.integers(0, estimate))
        for _ in range(data.draw(st.integers(1, 3))):
            hold.settle(cost)
            permit.release()
        self.spent[tenant, day] = self.spent.get((tenant, day), 0) + cost

    @rule(seconds=st.integers(1, 50_000))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @invariant()
    def never_overspent_by_more_than_one_call(self) -> None:
        for tenant in "abc":
            standing = self.ledger.status(tenant, self.budget, self.now)
            assert standing.spent == self.spent.get((tenant, self._today()), 0)
            assert standing.spent <= (self.budget.daily or 0) + 120
            assert standing.reserved <= max(0, (self.budget.daily or 0))
        assert self.slots.running() == len(self.open)

    def teardown(self) -> None:
        for _, hold, permit, _, _ in getattr(self, "open", []):
            hold.release()
            permit.release()
        if hasattr(self, "ledger"):
            assert self.ledger.reserved() == 0
            assert self.slots.running() == 0


TestDays = Days.TestCase
TestDays.settings = settings(deadline=None, max_examples=150, stateful_step_count=40)
