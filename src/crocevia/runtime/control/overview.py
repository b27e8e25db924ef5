"""One page of figures about a period, each beside the period before."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from crocevia.storage import record_queries
from crocevia.storage.database import Transaction
from crocevia.storage.record_queries import CallFilter, Grouping

Period = Literal["hour", "day", "week", "month"]

# seconds, and how many bars show them
PERIODS: Final[dict[Period, tuple[int, int]]] = {
    "hour": (3600, 30),
    "day": (86_400, 24),
    "week": (7 * 86_400, 28),
    "month": (30 * 86_400, 30),
}
RANKED: Final = 8
ALL: Final = CallFilter()
LISTS: Final[tuple[Grouping, ...]] = ("project", "model", "encode", "outcome")


class PeriodFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a period came to. Rates from 0 to 1, seconds, USD; None: unknown."""

    calls: int
    failed: int
    error_rate: float | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    unpriced: int
    first_byte_p50: float | None
    first_byte_p95: float | None


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """`at`: when it starts, Unix seconds."""

    at: float
    calls: int
    failed: int
    cost_usd: float | None


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a ranking: a project, model or engine with its calls."""

    name: str
    calls: int
    failed: int
    cost_usd: float | None
    unpriced: int


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The panel's first page."""

    period: Period
    since: float
    until: float
    now: PeriodFigures
    before: PeriodFigures
    bars: list[Bar]
    lists: dict[str, list[Rank]]


def overview(tx: Transaction, period: Period, until: float, wanted: CallFilter = ALL) -> Overview:
    """The period that ends at `until`, of the calls that `wanted` lets through (its times are not used)."""
    seconds, count = PERIODS[period]
    step = seconds / count
    since = until - seconds
    current = msgspec.structs.replace(wanted, since=since, until=until)
    earlier = msgspec.structs.replace(wanted, since=since - seconds, until=since)
    bars = {row.bucket: row for row in record_queries.series(tx, current, since, step)}
    return Overview(
        period=period,
        since=since,
        until=until,
        now=figures(tx, current),
        before=figures(tx, earlier),
        bars=[_bar(since + index * step, bars.get(index)) for index in range(count)],
        lists={name: _ranks(record_queries.ranked(tx, name, current, RANKED)) for name in LISTS},
    )


def figures(tx: Transaction, wanted: CallFilter) -> PeriodFigures:
    """Totals and percentiles."""
    row = record_queries.sums(tx, wanted)
    failed = row.failed or 0
    return PeriodFigures(
        calls=row.calls,
        failed=failed,
        error_rate=failed / row.calls if row.calls else None,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cache_read_tokens=row.cache_read_tokens,
        cache_write_tokens=row.cache_write_tokens,
        reasoning_tokens=row.reasoning_tokens,
        cost_usd=row.cost_usd,
        unpriced=row.unpriced or 0,
        first_byte_p50=_percentile(tx, wanted, row.timed, 0.50),
        first_byte_p95=_percentile(tx, wanted, row.timed, 0.95),
    )


def _percentile(tx: Transaction, wanted: CallFilter, count: int, share: float) -> float | None:
    """Nearest rank, so that it is a time that some call really took."""
    return record_queries.first_byte_at(tx, wanted, max(0, -int(-count * share // 1) - 1)) if count else None


def _bar(at: float, row: Any) -> Bar:
    if row is None:
        return Bar(at=at, calls=0, failed=0, cost_usd=None)
    return Bar(at=at, calls=row.calls, failed=row.failed or 0, cost_usd=row.cost_usd)


def _ranks(rows: list[Any]) -> list[Rank]:
    return [
        Rank(name=row.name, calls=row.calls, failed=row.failed or 0, cost_usd=row.cost_usd, unpriced=row.unpriced or 0)
        for row in rows
    ]
