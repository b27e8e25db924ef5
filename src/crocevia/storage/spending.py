"""Rows of money: what a project spent, its corrections, the webhooks of its soft threshold. Nano-dollars."""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy import (
    Column,
    ColumnElement,
    Float,
    Index,
    Integer,
    Table,
    Text,
    bindparam,
    cast,
    func,
    select,
    text,
    update,
)
from sqlalchemy.dialects.sqlite import insert as insert_or

from crocevia.core.ids import new_id
from crocevia.core.usage import LARGEST_USD
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.records import call_records
from crocevia.storage.rows import inserting, plausible, setting
from crocevia.storage.statements import Row

# amount: added to the spend of the day that holds `at`; negative gives back. The audit list says who and why.
budget_corrections = Table(
    "budget_corrections",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("project", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("amount", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Index(None, "project", "at"),
)

# One webhook per project and day: the key is what keeps it from firing twice. body: what is sent, at every attempt.
# due_at null: delivered, or given up (delivered_at null).
budget_alerts = Table(
    "budget_alerts",
    metadata,
    Column("project", Text, primary_key=True, nullable=False),
    Column("day", Text, primary_key=True, nullable=False),
    Column("id", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("status", Integer),
    Column("due_at", Float, index=True),
    Column("delivered_at", Float),
)


_NANO: Final = 1_000_000_000
_r: Final = call_records.c
_c: Final = budget_corrections.c
_a: Final = budget_alerts.c


def _sum(nano: ColumnElement[int], name: str) -> tuple[ColumnElement[int], ColumnElement[int]]:
    """Whole dollars and what is left of them: neither sum can overflow. See `_total`."""
    return (
        func.coalesce(func.sum(nano // _NANO), 0).label(f"{name}_dollars"),
        func.coalesce(func.sum(nano % _NANO), 0).label(f"{name}_rest"),
    )


def _total(row: Row, name: str) -> int:
    return int(getattr(row, f"{name}_dollars")) * _NANO + int(getattr(row, f"{name}_rest"))


# Rounded one by one: whole numbers add up to what the ledger in memory has.
_cost: Final = cast(func.round(plausible(_r.cost_usd, LARGEST_USD) * float(_NANO)), Integer)
_held: Final = cast(func.round(plausible(_r.reserved_usd, LARGEST_USD) * float(_NANO)), Integer)
_unpriced: Final = (plausible(_r.cost_usd, LARGEST_USD).is_(None), _r.settled_at.is_not(None), _r.outcome == "ok")
_within: Final = (
    _r.project == bindparam("of"),
    _r.started_at >= bindparam("since"),
    _r.started_at < bindparam("until"),
)
_SPENT: Final = select(
    *_sum(_cost, "spent"),
    func.count().label("calls"),
    func.count().filter(*_unpriced).label("unpriced"),
).where(*_within)
_RESERVED: Final = select(*_sum(_held, "reserved")).where(*_within, _r.settled_at.is_(None))
_SPENT_BY_USERS: Final = (
    select(_r.user_id, *_sum(_cost, "spent"))
    .where(
        _r.project.is_(None),
        _r.user_id.is_not(None),
        _r.started_at >= bindparam("since"),
        _r.started_at < bindparam("until"),
    )
    .group_by(_r.user_id)
)
_amount: Final = plausible(_c.amount, LARGEST_USD * _NANO, -LARGEST_USD * _NANO)
_CORRECTED: Final = select(*_sum(_amount, "corrected")).where(
    _c.project == bindparam("of"), _c.at >= bindparam("since"), _c.at < bindparam("until")
)
_CORRECT: Final = inserting(budget_corrections)
_ADD_ALERT: Final = (
    insert_or(budget_alerts)
    .values({name: bindparam(name) for name in ("project", "day", "id", "body", "created_at", "due_at")})
    .on_conflict_do_nothing()
)
_DUE: Final = select(budget_alerts).where(_a.due_at.is_not(None)).order_by(_a.due_at, _a.id)
_ATTEMPTED: Final = (
    update(budget_alerts)
    .where(_a.id == bindparam("which"), _a.due_at.is_not(None))
    .values(setting("status", "due_at", "delivered_at") | {"attempts": _a.attempts + 1})
)


class DaySpend(msgspec.Struct, frozen=True, kw_only=True):
    """spent: of settled calls. reserved: of calls under way. unpriced: good calls whose cost nobody knows."""

    spent: int
    reserved: int
    corrected: int
    calls: int
    unpriced: int

    @property
    def total(self) -> int:
        """What counts against the budget, without what is reserved."""
        return max(0, self.spent + self.corrected)


def day_spend(tx: Transaction, project: str, since: float, until: float) -> DaySpend:
    """One day of a project, by when its calls were admitted."""
    row = tx.first(_SPENT, of=project, since=since, until=until)
    assert row is not None
    return DaySpend(
        spent=_total(row, "spent"),
        calls=int(row.calls),
        unpriced=int(row.unpriced),
        reserved=_total(tx.first(_RESERVED, of=project, since=since, until=until), "reserved"),
        corrected=corrected(tx, project, since, until),
    )


def spent_by_users(tx: Transaction, since: float, until: float) -> dict[str, int]:
    """What each user's settled calls of that time cost, by user id."""
    return {row.user_id: _total(row, "spent") for row in tx.all(_SPENT_BY_USERS, since=since, until=until)}


def corrected(tx: Transaction, project: str, since: float, until: float) -> int:
    """The sum of a day's corrections."""
    return _total(tx.first(_CORRECTED, of=project, since=since, until=until), "corrected")


def add_correction(tx: Transaction, project: str, amount: int, reason: str, now: float) -> str:
    """Change the spend of the day that holds `now`; the correction's id."""
    made = new_id("cor")
    tx.run(_CORRECT, id=made, project=project, at=now, amount=amount, reason=reason)
    return made


def add_alert(tx: Transaction, project: str, day: str, event: str, body: str, now: float) -> bool:
    """Keep a webhook to be sent; False if this project's day has one already."""
    return tx.run(_ADD_ALERT, project=project, day=day, id=event, body=body, created_at=now, due_at=now) == 1


def due_alerts(tx: Transaction) -> list[Row]:
    """Webhooks that are neither delivered nor given up, the most urgent first."""
    return tx.all(_DUE)


def attempted(
    tx: Transaction, event: str, status: int | None, due_at: float | None, delivered_at: float | None
) -> None:
    """Note an attempt. due_at None: there will be no other. status None: nobody answered."""
    tx.run(_ATTEMPTED, which=event, status=status, due_at=due_at, delivered_at=delivered_at)
