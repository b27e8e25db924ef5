from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crocevia.core.usage import Usage
from crocevia.storage import completions, record_queries, records, spending
from crocevia.storage.database import Transaction, connect
from crocevia.storage.record_queries import CallFilter
from crocevia.storage.records import OpenedCall, SettledCall


@pytest.fixture
def tx(store: Path) -> Iterator[Transaction]:
    with closing(connect(store)) as connection:
        yield Transaction(connection)


def opened(call_id: str = "c1", **more: Any) -> OpenedCall:
    return OpenedCall(**{"id": call_id, "started_at": 100.0, "door": "pepper", "catalogue_revision": 3, **more})


def settled(call_id: str = "c1", **more: Any) -> SettledCall:
    return SettledCall(**{"id": call_id, "settled_at": 101.0, "outcome": "ok", "ended_by": "model", **more})


def test_a_call_is_one_row_from_admission_to_settlement(tx: Transaction) -> None:
    records.open_calls(
        tx, [opened(encode="agente", project="home", model="Pepper 7", session_id="s", reserved_usd=0.5)]
    )
    row = records.find_call(tx, "c1")
    assert (row.settled_at, row.outcome, row.cost_usd, row.reserved_usd) == (None, None, None, 0.5)
    usage = Usage(input_tokens=10, output_tokens=2, cache_read_tokens=4)
    end = settled(model="Pepper 6", usage=usage, cost_usd=0.01, bytes_out=77, notes={"reserve": "no blocchi"})
    assert records.settle_calls(tx, [end]) == 1
    row = records.find_call(tx, "c1")
    assert (row.encode, row.project, row.model, row.session_id) == ("agente", "home", "Pepper 6", "s")
    assert (row.input_tokens, row.output_tokens, row.cache_read_tokens, row.reasoning_tokens) == (10, 2, 4, None)
    assert (row.cost_usd, row.bytes_out, row.notes) == (0.01, 77, '{"reserve":"no blocchi"}')


def test_unknown_stays_null_and_the_admitted_model_is_kept(tx: Transaction) -> None:
    records.open_calls(tx, [opened(model="Pepper 7", engine="claude")])
    records.settle_calls(tx, [settled()])
    row = records.find_call(tx, "c1")
    assert (row.model, row.engine) == ("Pepper 7", "claude")
    assert (row.cost_usd, row.input_tokens, row.first_byte_seconds) == (None, None, None)


def test_a_call_settles_once(tx: Transaction) -> None:
    records.open_calls(tx, [opened()])
    assert records.settle_calls(tx, [settled(outcome="cancelled", ended_by="client")]) == 1
    assert records.settle_calls(tx, [settled(outcome="ok")]) == 0
    assert records.settle_calls(tx, [settled("never-opened")]) == 0
    assert records.find_call(tx, "c1").outcome == "cancelled"


def test_open_rows_settle_at_boot_at_what_was_reserved(tx: Transaction) -> None:
    records.open_calls(tx, [opened("priced", reserved_usd=0.25), opened("unpriced"), opened("done", reserved_usd=9.0)])
    records.settle_calls(tx, [settled("done", cost_usd=0.1)])
    costs = {"priced": 0.25, "unpriced": None, "done": 0.1}
    assert records.call_costs(tx, [*costs, "never opened"]) == costs  # at what was reserved before that, too
    assert records.settle_interrupted(tx, now=500.0) == 2
    assert records.call_costs(tx, costs) == costs
    priced, unpriced = records.find_call(tx, "priced"), records.find_call(tx, "unpriced")
    assert (priced.outcome, priced.ended_by, priced.cost_usd, priced.estimated) == ("interrupted", "restart", 0.25, 1)
    assert (unpriced.outcome, unpriced.cost_usd, unpriced.estimated, unpriced.settled_at) == (
        "interrupted",
        None,
        0,
        500,
    )
    assert records.find_call(tx, "done").cost_usd == 0.1
    assert records.settle_interrupted(tx, now=600.0) == 0


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 99), st.one_of(st.none(), st.integers(0, 8))),
        max_size=40,
    ),
    st.integers(0, 99),
)
def test_counts_and_spend_are_what_a_fold_over_the_records_says(
    tx: Transaction, calls: list[tuple[str | None, int, int | None]], since: int
) -> None:
    tx.connection.execute("DELETE FROM call_records")
    for index, (project, at, eighths) in enumerate(calls):
        records.open_calls(tx, [opened(str(index), project=project, started_at=at + 0.5)])
        records.settle_calls(tx, [settled(str(index), cost_usd=None if eighths is None else eighths / 8)])
    for project in ("a", "b"):
        expected = sum((e or 0) * 125_000_000 for p, at, e in calls if p == project and at + 0.5 >= since)
        assert spending.day_spend(tx, project, since, 200.0).spent == expected
        counted = sum(row.calls for row in records.call_counts(tx, since) if row.project == project)
        assert counted == sum(1 for p, at, _ in calls if p == project and at + 0.5 > since)


def test_newest_records_come_first_and_can_be_of_one_project(tx: Transaction) -> None:
    for index, project in enumerate(["a", "b", "a", "b"]):
        records.open_calls(tx, [opened(str(index), project=project, started_at=float(index))])
    assert [row.id for row in record_queries.page(tx, CallFilter(), 3)] == ["3", "2", "1"]
    assert [row.id for row in record_queries.page(tx, CallFilter(project="a"), 3)] == ["2", "0"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.text() | st.binary() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from(["{}", "[]", '{"status":"pending"}'])
)
def test_a_completion_with_anything_in_its_json_is_one_of_unknown_cost(store: Path, held: object) -> None:
    with closing(connect(store)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM completions")
        connection.execute(
            "INSERT INTO completions (id, workspace_id, chat_id, team_id, user_id, status, started_at, created_at,"
            " updated_at, usage, usage_cost, terminal_snapshot)"
            " VALUES ('t', 'w', 'c', 'm', 'u', 'failed', 1, 1, 1, ?, ?, ?)",
            (held, held, held),
        )
        tx = Transaction(connection)
        found = completions.find(tx, "c", "t")
        assert found is not None
        assert (found.usage_cost, found.terminal_snapshot) == (None, None)
        assert completions.pending(tx) == []
