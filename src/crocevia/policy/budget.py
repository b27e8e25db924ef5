"""The day's budget of every tenant: reserved before a call, settled after it. Synchronous: one step, nothing between.

Strategy: a call is admitted if its upper estimate fits beside what is spent and reserved. If nothing is reserved and
something is left, one call may go although its estimate does not fit (else a small budget could never be used); it
holds all that is left, so nothing goes beside it. What is spent thus exceeds the budget by one call's estimate error
at most. A call belongs to the day on which it was admitted.
"""

from __future__ import annotations

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.policy.periods import Day, day_of


class Budget(msgspec.Struct, frozen=True):
    """What may be spent per calendar day. None is unlimited."""

    daily: int | None = None
    """Nano-dollars."""
    soft: int | None = None
    """Nano-dollars from which on it is told, once a day."""
    timezone: str = "UTC"
    """Whose midnight begins the day."""


class BudgetStatus(msgspec.Struct, frozen=True):
    """A day so far."""

    day: Day
    spent: int
    """Nano-dollars, with corrections; never below 0."""
    reserved: int
    """Nano-dollars that calls under way may still cost."""


class _Sheet:
    """One tenant's one day."""

    __slots__ = ("alerted", "corrected", "day", "open", "reserved", "settled")

    def __init__(self, day: Day) -> None:
        self.day = day
        self.settled = 0
        self.corrected = 0
        self.reserved = 0
        self.open = 0
        self.alerted = False

    @property
    def spent(self) -> int:
        return max(0, self.settled + self.corrected)


class Reservation:
    """Money set aside for one call. It ends exactly once; ending it again does nothing.

    estimate: what the call may cost at most. reserved: what of it counts against the budget meanwhile.
    """

    __slots__ = ("_sheet", "estimate", "reserved")

    def __init__(self, sheet: _Sheet, estimate: int, reserved: int) -> None:
        self.estimate = estimate
        self.reserved = reserved
        self._sheet: _Sheet | None = sheet
        sheet.reserved += reserved
        sheet.open += 1

    def settle(self, cost: int) -> Day | None:
        """Replace what was reserved by what it cost; the day it counts to, or None if it was over already."""
        sheet, self._sheet = self._sheet, None
        if sheet is None:
            return None
        sheet.reserved -= self.reserved
        sheet.open -= 1
        sheet.settled += max(0, cost)
        return sheet.day

    def release(self) -> None:
        """The call cost nothing."""
        self.settle(0)


class Ledger:
    """Every tenant's day. `now`: Unix seconds."""

    __slots__ = ("_earlier", "_sheets")

    def __init__(self) -> None:
        self._sheets: dict[str, _Sheet] = {}
        self._earlier: dict[str, _Sheet] = {}  # of the day before, for when the clock comes back to it

    def reserve(self, tenant: str, budget: Budget, estimate: int, now: float) -> Reservation:
        """Set money aside. Raises GatewayError(BUDGET_EXHAUSTED) with `retry_after`; a refused call takes nothing."""
        sheet = self._sheet(tenant, budget, now)
        if budget.daily is None or estimate == 0:
            return Reservation(sheet, estimate, estimate)
        left = budget.daily - sheet.spent - sheet.reserved
        if estimate <= left:
            return Reservation(sheet, estimate, estimate)
        if left > 0 and not sheet.reserved:
            return Reservation(sheet, estimate, left)
        raise _exhausted(sheet, budget.daily, now)

    def status(self, tenant: str, budget: Budget, now: float) -> BudgetStatus:
        """What is spent and reserved today."""
        sheet = self._sheet(tenant, budget, now)
        return BudgetStatus(sheet.day, sheet.spent, sheet.reserved)

    def remember(self, tenant: str, budget: Budget, spent: int, now: float) -> None:
        """Today's spend of an earlier life."""
        self._sheet(tenant, budget, now).settled += spent

    def correct(self, tenant: str, budget: Budget, corrected: int, now: float) -> None:
        """Today's corrections, all of them together."""
        self._sheet(tenant, budget, now).corrected = corrected

    def cross(self, tenant: str, budget: Budget, now: float) -> BudgetStatus | None:
        """Today's status if the soft threshold is reached and this had not been told yet."""
        sheet = self._sheet(tenant, budget, now)
        if budget.soft is None or sheet.alerted or sheet.spent < budget.soft:
            return None
        sheet.alerted = True
        return BudgetStatus(sheet.day, sheet.spent, sheet.reserved)

    def reserved(self) -> int:
        """Everything that is set aside now."""
        return sum(sheet.reserved for sheet in self._sheets.values())

    def _sheet(self, tenant: str, budget: Budget, now: float) -> _Sheet:
        sheet = self._sheets.get(tenant)
        if sheet is not None and sheet.day.since <= now < sheet.day.until:
            return sheet
        day = day_of(now, budget.timezone)
        if sheet is not None and now < sheet.day.since:
            self._come_back(tenant, sheet, day)
            return sheet
        if sheet is not None:
            self._earlier[tenant] = sheet
        sheet = self._sheets[tenant] = _Sheet(day)
        return sheet

    def _come_back(self, tenant: str, sheet: _Sheet, day: Day) -> None:
        """The clock stepped back: the day follows it, with all that was spent since, so no second budget opens."""
        earlier = self._earlier.pop(tenant, None)
        if earlier is not None and earlier.day.label == day.label:
            sheet.settled += earlier.settled + earlier.reserved
            sheet.corrected += earlier.corrected
            sheet.alerted = sheet.alerted or earlier.alerted
        sheet.day = day

    def move(self, tenant: str, budget: Budget, now: float) -> None:
        """The tenant's zone changed: today's figures go along, whatever part of them was yesterday there."""
        sheet = self._sheets.get(tenant)
        if sheet is not None and sheet.day.since <= now < sheet.day.until:
            sheet.day = day_of(now, budget.timezone)


def _exhausted(sheet: _Sheet, daily: int, now: float) -> GatewayError:
    if sheet.spent < daily:  # what is left is reserved by calls that are under way, and may come back at any moment
        return GatewayError(Reason.BUDGET_IN_USE, retry_after=1)
    seconds = sheet.day.seconds_left(now)
    return GatewayError(Reason.BUDGET_EXHAUSTED, retry_after=seconds, seconds=seconds)
