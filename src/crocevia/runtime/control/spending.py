"""What a project spent, day by day, and corrections of today's spend."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import msgspec

from crocevia.core.catalogue import ProjectSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.policy.periods import Day, day_of, days_before
from crocevia.policy.prices import nano, usd
from crocevia.runtime.control.audit import Actor, note
from crocevia.storage import conversations, declared, meta, spending
from crocevia.storage.database import Transaction

MOST_USD = 1_000_000
_REASON = 200  # characters


class DayRow(msgspec.Struct, frozen=True, kw_only=True):
    """USD."""

    day: str
    spent: float
    reserved: float
    corrected: float
    """Part of `spent`."""
    calls: int
    unpriced: int
    """Answered calls whose cost nobody knows."""


class SpendingReport(msgspec.Struct, frozen=True, kw_only=True):
    """days: newest first. resets_in: seconds until the next day of the project's zone."""

    project: str
    timezone: str
    daily_budget_usd: float | None
    soft_threshold_usd: float | None
    remaining_usd: float | None
    resets_in: int
    days: list[DayRow]


def report(tx: Transaction, name: str, now: float, days: int = 7) -> SpendingReport:
    """Today and the days before it. Raises GatewayError(NOT_FOUND)."""
    project = find(tx, name)
    rows = [_row(tx, name, day) for day in days_before(now, project.timezone, days)]
    budget, today = project.daily_budget_usd, rows[0]
    return SpendingReport(
        project=name,
        timezone=project.timezone,
        daily_budget_usd=budget,
        soft_threshold_usd=project.soft_threshold_usd,
        remaining_usd=None if budget is None else usd(max(0, nano(budget) - nano(today.spent) - nano(today.reserved))),
        resets_in=day_of(now, project.timezone).seconds_left(now),
        days=rows,
    )


def correct(tx: Transaction, actor: Actor, name: str, amount: str, reason: str, now: float) -> SpendingReport:
    """Add `amount` (USD, negative gives back) to today's spend, with a line in the audit list.

    A running server follows within a second. Raises GatewayError: NOT_FOUND, INVALID_REQUEST.
    """
    project = find(tx, name)
    change = _amount(amount)
    reason = reason.strip()
    if not reason or len(reason) > _REASON or not reason.isprintable():
        raise GatewayError(Reason.CORRECTION_REASON, param="reason", most=_REASON)
    day = day_of(now, project.timezone)
    found = spending.day_spend(tx, name, day.since, day.until)
    if found.spent + found.corrected + change < 0:
        raise GatewayError(Reason.CORRECTION_CREDIT, param="amount", spent=f"{usd(found.total):.6f}")
    spending.add_correction(tx, name, change, reason, now)
    after = f"{usd(found.spent + found.corrected + change):.6f}"
    note(
        tx,
        actor,
        "corrected",
        "projects",
        name,
        {"spent_usd": (f"{usd(found.total):.6f}", after), "day": (None, day.label), "reason": (None, reason)},
    )
    meta.bump_revision(tx)
    return report(tx, name, now)


def forget(tx: Transaction, name: str, conversation: str | None) -> int:
    """Delete a stored conversation of the classic API, or all of the project; how many messages there were.

    Raises GatewayError(NOT_FOUND).
    """
    find(tx, name)
    return conversations.forget(tx, name, conversation)


def find(tx: Transaction, name: str) -> ProjectSpec:
    """The project. Raises GatewayError(NOT_FOUND)."""
    project = declared.load(tx, ProjectSpec).get(name)
    if project is None:
        raise GatewayError(Reason.PROJECT_MISSING, project=name)
    return project


def _amount(text: str) -> int:
    try:
        amount = Decimal(text)
        if not amount.is_finite() or not 0 < abs(amount) <= MOST_USD:
            raise InvalidOperation
    except InvalidOperation:
        raise GatewayError(Reason.CORRECTION_AMOUNT, param="amount", most=MOST_USD) from None
    return nano(amount)


def _row(tx: Transaction, project: str, day: Day) -> DayRow:
    found = spending.day_spend(tx, project, day.since, day.until)
    return DayRow(
        day=day.label,
        spent=usd(found.total),
        reserved=usd(found.reserved),
        corrected=usd(found.corrected),
        calls=found.calls,
        unpriced=found.unpriced,
    )
