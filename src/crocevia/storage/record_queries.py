"""What call records say together: sums, a series over time, ranked lists, filtered pages.

Unknown is None, never zero: a sum of nothing known is None, and unpriced calls are counted beside the cost.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from sqlalchemy import ColumnElement, Integer, and_, bindparam, case, cast, func, or_, select

from crocevia.core.usage import LARGEST_TOKENS, LARGEST_USD
from crocevia.storage.database import Transaction
from crocevia.storage.records import call_records
from crocevia.storage.rows import plausible
from crocevia.storage.statements import Row

Grouping = Literal["project", "model", "engine", "encode", "outcome", "door"]
GROUPINGS: Final[tuple[Grouping, ...]] = ("project", "model", "engine", "encode", "outcome", "door")

LARGEST_SECONDS: Final = 1e9

_c: Final = call_records.c
_FAILED: Final = case((and_(_c.outcome != "ok", _c.outcome != "cancelled"), 1), else_=0)
_COST: Final = plausible(_c.cost_usd, LARGEST_USD)
_FIRST_BYTE: Final = plausible(_c.first_byte_seconds, LARGEST_SECONDS)
_UNPRICED: Final = case((and_(_c.settled_at.is_not(None), _COST.is_(None), _c.outcome == "ok"), 1), else_=0)


class CallFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records.

    Times are Unix seconds, `since` included, `until` not; None: whatever it is. outcome `failed`: every outcome that is
    neither `ok` nor `cancelled`; `running`: not settled. encode and door match exactly, as everything else does.
    """

    since: float | None = None
    until: float | None = None
    project: str | None = None
    model: str | None = None
    engine: str | None = None
    encode: str | None = None
    door: str | None = None
    session: str | None = None
    outcome: str | None = None
    min_cost: float | None = None
    """USD."""


_CONDITIONS: Final[dict[str, ColumnElement[bool]]] = {
    "since": _c.started_at >= bindparam("since"),
    "until": _c.started_at < bindparam("until"),
    "project": _c.project == bindparam("project"),
    "model": _c.model == bindparam("model"),
    "engine": _c.engine == bindparam("engine"),
    "encode": _c.encode == bindparam("encode"),
    "door": _c.door == bindparam("door"),
    "session": _c.session_id == bindparam("session"),
    "outcome": or_(
        _c.outcome == bindparam("outcome"),
        and_(bindparam("outcome") == "failed", _FAILED == 1),
        and_(bindparam("outcome") == "running", _c.settled_at.is_(None)),
    ),
    "min_cost": _c.cost_usd >= bindparam("min_cost"),
}

_BEFORE: Final = or_(
    _c.started_at < bindparam("at"), and_(_c.started_at == bindparam("at"), _c.id < bindparam("before"))
)
_COSTS: Final = func.round(func.sum(_COST), 9)  # to the nano-dollar, in which costs are whole
_SUMS: Final = (
    func.count().label("calls"),
    func.sum(_FAILED).label("failed"),
    func.sum(plausible(_c.input_tokens, LARGEST_TOKENS)).label("input_tokens"),
    func.sum(plausible(_c.output_tokens, LARGEST_TOKENS)).label("output_tokens"),
    func.sum(plausible(_c.cache_read_tokens, LARGEST_TOKENS)).label("cache_read_tokens"),
    func.sum(plausible(_c.cache_write_tokens, LARGEST_TOKENS)).label("cache_write_tokens"),
    func.sum(plausible(_c.reasoning_tokens, LARGEST_TOKENS)).label("reasoning_tokens"),
    _COSTS.label("cost_usd"),
    func.sum(_UNPRICED).label("unpriced"),
    func.count(_FIRST_BYTE).label("timed"),
)


class _Statements:
    """Built once per set of conditions: the statement cache knows them by identity."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], Any] = {}

    def get(self, base: str, names: tuple[str, ...]) -> Any:
        found = self._made.get((base, names))
        if found is None:
            found = self._made[base, names] = _BASES[base].where(*(_CONDITIONS[name] for name in names))
        return found


_BUCKET: Final = cast((_c.started_at - bindparam("origin")) / bindparam("step"), Integer).label("bucket")
_BASES: Final[dict[str, Any]] = {
    "sums": select(*_SUMS),
    "series": select(
        _BUCKET,
        func.count().label("calls"),
        func.sum(_FAILED).label("failed"),
        _COSTS.label("cost_usd"),
    ).group_by(_BUCKET),
    "first_byte": select(_c.first_byte_seconds)
    .where(_FIRST_BYTE.is_not(None))
    .order_by(_c.first_byte_seconds)
    .limit(1)
    .offset(bindparam("skip")),
    "page": select(call_records).order_by(_c.started_at.desc(), _c.id.desc()).limit(bindparam("most")),
    "next_page": select(call_records)
    .where(_BEFORE)
    .order_by(_c.started_at.desc(), _c.id.desc())
    .limit(bindparam("most")),
    **{
        f"by_{name}": select(
            _c[name].label("name"),
            func.count().label("calls"),
            func.sum(_FAILED).label("failed"),
            _COSTS.label("cost_usd"),
            func.sum(_UNPRICED).label("unpriced"),
        )
        .where(_c[name].is_not(None))
        .group_by(_c[name])
        .order_by(func.count().desc(), _c[name])
        .limit(bindparam("most"))
        for name in GROUPINGS
    },
}
_made: Final = _Statements()


def sums(tx: Transaction, wanted: CallFilter) -> Row:
    """One row of totals (see `_SUMS`); sums are None where nothing is known."""
    row = _first(tx, "sums", wanted)
    assert row is not None
    return row


def first_byte_at(tx: Transaction, wanted: CallFilter, rank: int) -> float | None:
    """Seconds to the first byte of the call that `rank` others were faster than or as fast as."""
    row = _first(tx, "first_byte", wanted, skip=rank)
    return None if row is None else float(row.first_byte_seconds)


def series(tx: Transaction, wanted: CallFilter, origin: float, step: float) -> list[Row]:
    """Rows of (bucket, calls, failed, cost_usd); bucket 0 starts at `origin`, each lasts `step` seconds."""
    return _all(tx, "series", wanted, origin=origin, step=step)


def ranked(tx: Transaction, grouping: Grouping, wanted: CallFilter, most: int) -> list[Row]:
    """Rows of (name, calls, failed, cost_usd, unpriced), the busiest first."""
    return _all(tx, f"by_{grouping}", wanted, most=most)


def page(tx: Transaction, wanted: CallFilter, most: int, before: tuple[float, str] | None = None) -> list[Row]:
    """Records, newest first; older than `before`, the (started_at, id) of the last one of another page."""
    if before is None:
        return _all(tx, "page", wanted, most=most)
    return _all(tx, "next_page", wanted, most=most, at=before[0], before=before[1])


def _values(wanted: CallFilter) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}


def _all(tx: Transaction, base: str, wanted: CallFilter, **more: Any) -> list[Row]:
    values = _values(wanted)
    return tx.all(_made.get(base, tuple(values)), **values, **more)


def _first(tx: Transaction, base: str, wanted: CallFilter, **more: Any) -> Row | None:
    values = _values(wanted)
    return tx.first(_made.get(base, tuple(values)), **values, **more)
