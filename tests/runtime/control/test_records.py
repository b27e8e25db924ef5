"""What call records say together: totals with unknowns, percentiles, bars, ranks, filters, pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crocevia.core.usage import Usage
from crocevia.runtime.control.calls import CallFilter, call, calls
from crocevia.runtime.control.overview import PERIODS, figures, overview
from crocevia.storage import migrate
from crocevia.storage.database import Transaction, connect
from crocevia.storage.record_queries import GROUPINGS, ranked
from crocevia.storage.records import OpenedCall, SettledCall, open_calls, settle_calls

NOW = 1_796_000_000.0


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("records") / "crocevia.db"
    migrate.migrate(path)
    return path.read_bytes()


@pytest.fixture
def tx(tmp_path: Path, empty: bytes) -> Iterator[Transaction]:
    (tmp_path / "crocevia.db").write_bytes(empty)
    connection = connect(tmp_path / "crocevia.db")
    yield Transaction(connection)
    connection.close()


def _add(tx: Transaction, number: int, *, ago: float = 60.0, outcome: str | None = "ok", **more: Any) -> None:
    opened = {name: more.pop(name) for name in tuple(more) if name in OpenedCall.__struct_fields__}
    fields: dict[str, Any] = {"project": "casa", "model": "m", "engine": "e", "encode": "agente"} | opened
    call_id = f"call_{number:03}"
    open_calls(tx, [OpenedCall(id=call_id, started_at=NOW - ago, door="pepper", catalogue_revision=1, **fields)])
    if outcome is not None:
        settled = SettledCall(id=call_id, settled_at=NOW, outcome=outcome, ended_by="model", **more)
        settle_calls(tx, [settled])


def test_nothing_known_is_unknown_and_never_zero(tx: Transaction) -> None:
    _add(tx, 1)
    found = figures(tx, CallFilter())
    assert (found.calls, found.failed, found.error_rate) == (1, 0, 0.0)
    assert (found.input_tokens, found.cost_usd, found.first_byte_p50, found.reasoning_tokens) == (None,) * 4
    assert found.unpriced == 1


def test_totals_add_what_is_known_and_count_what_has_no_price(tx: Transaction) -> None:
    _add(tx, 1, usage=Usage(input_tokens=10, output_tokens=5), cost_usd=0.25)
    _add(tx, 2, usage=Usage(input_tokens=3), cost_usd=None)
    _add(tx, 3, outcome="upstream_failed", cost_usd=None)
    _add(tx, 4, outcome="cancelled", cost_usd=0.5)
    _add(tx, 5, outcome=None)
    found = figures(tx, CallFilter())
    assert (found.calls, found.failed, found.error_rate) == (5, 1, 0.2)
    assert (found.input_tokens, found.output_tokens, found.cost_usd, found.unpriced) == (13, 5, 0.75, 1)


@pytest.mark.parametrize(
    ("count", "median", "late"), [(1, 0.01, 0.01), (2, 0.01, 0.02), (20, 0.10, 0.19), (100, 0.50, 0.95)]
)
def test_a_percentile_is_a_time_that_a_call_really_took(
    tx: Transaction, count: int, median: float, late: float
) -> None:
    for number in range(count):
        _add(tx, number, first_byte_seconds=(number + 1) / 100)
    _add(tx, 900, first_byte_seconds=None)
    found = figures(tx, CallFilter())
    assert (found.first_byte_p50, found.first_byte_p95) == (median, late)


@pytest.mark.parametrize("period", PERIODS)
def test_a_period_is_beside_the_one_before_and_its_bars_add_up(tx: Transaction, period: Any) -> None:
    seconds, count = PERIODS[period]
    edges = [seconds, seconds - 0.5, seconds / 2, 1, 0.5]
    for number, ago in enumerate(edges):
        _add(tx, number, ago=ago)
    _add(tx, 10, ago=seconds + 1)
    _add(tx, 11, ago=2 * seconds + 1)
    _add(tx, 12, ago=0)  # starts with the next period
    found = overview(tx, period, NOW)
    assert (found.now.calls, found.before.calls) == (len(edges), 1)
    assert len(found.bars) == count
    assert sum(bar.calls for bar in found.bars) == len(edges)
    assert found.bars[0].at == found.since == NOW - seconds
    assert (found.bars[0].calls, found.bars[-1].calls) == (2, 2)


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (CallFilter(), [1, 2, 3, 4]),
        (CallFilter(project="casa"), [1, 3, 4]),
        (CallFilter(encode="agente"), [1, 2, 4]),
        (CallFilter(session="s"), [2]),
        (CallFilter(model="other"), [4]),
        (CallFilter(engine="e", door="pepper"), [1, 2, 3, 4]),
        (CallFilter(door="atp"), []),
        (CallFilter(outcome="ok"), [1]),
        (CallFilter(outcome="failed"), [2]),
        (CallFilter(outcome="cancelled"), [3]),
        (CallFilter(outcome="running"), [4]),
        (CallFilter(min_cost=0.5), [2]),
        (CallFilter(since=NOW - 61, until=NOW - 59), [1, 2, 3, 4]),
        (CallFilter(since=NOW), []),
        (CallFilter(project="' OR 1=1 --"), []),
        (CallFilter(project="casa", outcome="cancelled", min_cost=0.1), []),
    ],
)
def test_a_filter_lets_through_what_it_says(tx: Transaction, wanted: CallFilter, numbers: list[int]) -> None:
    _add(tx, 1, cost_usd=0.4)
    _add(tx, 2, outcome="internal", project="altro", session_id="s", cost_usd=0.5)
    _add(tx, 3, outcome="cancelled", encode="riassunto")
    _add(tx, 4, outcome=None, model="other")
    found = calls(tx, wanted)
    assert sorted(row.id for row in found.rows) == [f"call_{number:03}" for number in numbers]
    assert figures(tx, wanted).calls == len(numbers)


def test_pages_are_whole_without_gaps_or_repeats_where_moments_are_equal(tx: Transaction) -> None:
    for number in range(23):
        _add(tx, number, ago=60.0 - number // 5)
    seen: list[str] = []
    before = None
    while True:
        page = calls(tx, CallFilter(project="casa"), most=4, before=before)
        seen += [row.id for row in page.rows]
        if (before := page.older) is None:
            break
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 23


@pytest.mark.parametrize("cursor", ["", "x", "nan/call", "inf/x", "1e999/x", "/", "1796000000.0"])
def test_a_cursor_that_nobody_gave_out_is_no_fault(tx: Transaction, cursor: str) -> None:
    _add(tx, 1)
    assert len(calls(tx, CallFilter(), before=cursor).rows) in (0, 1)


def test_one_call_is_found_with_its_notes(tx: Transaction) -> None:
    _add(tx, 1, notes={"retries": 2}, partial=True)
    found = call(tx, "call_001")
    assert found is not None
    assert (found.notes, found.partial, found.estimated) == ({"retries": 2}, True, False)
    assert call(tx, "call_999") is None


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_ranks_put_the_busiest_first(tx: Transaction, grouping: Any) -> None:
    for number in range(6):
        column = {"outcome": "outcome"}.get(grouping, grouping)
        if column == "door":
            continue
        _add(tx, number, **{column: "ok" if number < 4 else "internal"})
    found = ranked(tx, grouping, CallFilter(), 5)
    assert [(row.name, row.calls) for row in found][:2] == ([] if grouping == "door" else [("ok", 4), ("internal", 2)])
