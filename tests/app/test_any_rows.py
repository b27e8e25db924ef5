"""Whatever a row of usage and money holds, the server starts, the sums are sums, and `doctor` names the row."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from crocevia.app.service import Service, open_service
from crocevia.cli import health
from crocevia.config import Settings
from crocevia.core.answers import fold
from crocevia.core.catalogue import EngineSpec, ModelSpec
from crocevia.core.events import UsageReported
from crocevia.core.usage import LARGEST_TOKENS, LARGEST_USD, TOKENS, Usage
from crocevia.runtime.control import calls, overview, spending
from crocevia.storage import records
from crocevia.storage.database import Transaction, connect
from crocevia.storage.home import Home
from crocevia.storage.records import SettledCall
from tests.app.serving import declare

COLUMNS = (
    *TOKENS,
    *("cost_usd", "reserved_usd", "first_byte_seconds", "stream_seconds", "bytes_in", "bytes_out", "estimated"),
    *("partial", "notes", "settled_at", "outcome"),
)
NEEDED = ("estimated", "partial")
ANYTHING = (
    st.integers(min_value=-(2**63), max_value=2**63 - 1)
    | st.sampled_from([10**18, 2**63 - 1, -(2**63), LARGEST_TOKENS, LARGEST_TOKENS + 1])
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.sampled_from(['{"proof": 1}', '{"proof": {"answer": "x", "context": "y"}}', '{"proof": {}}', '{"proof"'])
)
ROW = st.fixed_dictionaries(
    {name: ANYTHING for name in NEEDED}, optional={name: ANYTHING for name in COLUMNS if name not in NEEDED}
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """One for all rows: `put` takes those before away."""
    made = Home(tmp_path_factory.mktemp("home"))
    declare(made, (EngineSpec(name="scripted", kind="scripted"),), (ModelSpec(name="m", engine="scripted"),))
    return made


def put(home: Home, rows: list[dict[str, Any]]) -> None:
    """These rows alone, of the project `casa` and of a user, all of this very second."""
    with closing(sqlite3.connect(home.database)) as database:
        database.execute("DELETE FROM call_records")
        for index, row in enumerate(rows):
            whose = {"project": "casa"} if index % 2 == 0 else {"user_id": "usr_1"}
            fields = {"id": f"c{index}", "started_at": time.time(), "door": "pepper", "catalogue_revision": 1}
            values = fields | whose | row
            names = ", ".join(values)
            marks = ", ".join("?" * len(values))
            database.execute(f"INSERT INTO call_records ({names}) VALUES ({marks})", list(values.values()))
        database.commit()


def everything(tx: Transaction) -> None:
    """What the panel and the command line make of the rows."""
    now = time.time()
    found = overview.overview(tx, "hour", now + 1)
    assert found.now.cost_usd is None or math.isfinite(found.now.cost_usd)
    assert all(getattr(found.now, name) is None or found.now.input_tokens != math.inf for name in TOKENS)
    shown = calls.calls(tx, calls.CallFilter())
    for row in shown.rows:
        assert all(getattr(row, name) is None or 0 <= getattr(row, name) <= LARGEST_TOKENS for name in TOKENS)
        assert row.cost_usd is None or 0 <= row.cost_usd <= LARGEST_USD
    assert spending.report(tx, "casa", now).days[0].spent >= 0


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(ROW, min_size=1, max_size=6))
@example(rows=[{"estimated": 0, "partial": 0, "outcome": "ok", "input_tokens": 10**18, "cost_usd": 1e14}] * 24)
@example(rows=[{"estimated": 0, "partial": 0, "outcome": "ok", "cost_usd": float(LARGEST_USD)}] * 24)
def test_no_row_keeps_a_server_from_starting_or_its_sums_from_being_told(
    rows: list[dict[str, Any]], home: Home
) -> None:
    async def work() -> None:
        async with open_service(Settings(), home, structlog.get_logger()) as service:
            assert isinstance(service, Service)
            await service.database.read(everything)

    put(home, rows)
    asyncio.run(work())
    findings = list(health.store(home))
    assert {finding.level for finding in findings} <= {"ok", "warn"}
    told = [finding.message.details for finding in findings if finding.area == "records"]
    wrong = strange(home)
    named, others = wrong[:NAMED], len(wrong) - NAMED
    assert told == named + ([{"count": others}] if others > 0 else [])


NAMED = 5  # by `doctor`; the others are counted


def strange(home: Home) -> list[dict[str, str]]:
    """The records that hold what no call can have consumed or cost, each with the columns."""
    most = dict.fromkeys(TOKENS, LARGEST_TOKENS) | dict.fromkeys(("cost_usd", "reserved_usd"), LARGEST_USD)
    with closing(sqlite3.connect(home.database)) as database:
        rows = database.execute(f"SELECT id, {', '.join(most)} FROM call_records ORDER BY id").fetchall()
    found = []
    for call, *values in rows:
        held = zip(most, values, strict=True)
        wrong = [name for name, value in held if value is not None and not _possible(value, most[name])]
        if wrong:
            found.append({"record": call, "columns": ", ".join(wrong)})
    return found


def _possible(value: Any, most: float) -> bool:
    return isinstance(value, int | float) and 0 <= value <= most


def test_sums_hold_what_can_be_and_doctor_names_the_rows_that_cannot(tmp_path: Path) -> None:
    home = Home(tmp_path)
    declare(home, (EngineSpec(name="scripted", kind="scripted"),), (ModelSpec(name="m", engine="scripted"),))
    good = {"outcome": "ok", "settled_at": time.time(), "input_tokens": 7, "cost_usd": 0.5}
    mad = {"outcome": "ok", "settled_at": time.time(), "input_tokens": 10**18, "cost_usd": -3.0}
    put(home, [good, {}, mad, {}, mad])
    with closing(connect(home.database)) as connection:
        tx = Transaction(connection)
        found = overview.overview(tx, "hour", time.time() + 1).now
        today = spending.report(tx, "casa", time.time()).days[0]
    assert (found.input_tokens, found.cost_usd, found.unpriced) == (7, 0.5, 2)
    assert (today.spent, today.unpriced) == (0.5, 2)
    told = [finding.message.details for finding in health.store(home) if finding.area == "records"]
    assert told == [{"record": call, "columns": "input_tokens, cost_usd"} for call in ("c2", "c4")]


@given(st.integers() | st.none())
def test_usage_beyond_reason_is_unknown(figure: int | None) -> None:
    heard = fold([UsageReported(Usage(input_tokens=3)), UsageReported(Usage(input_tokens=figure))]).usage
    expected = 3 if figure is None else figure if 0 <= figure <= LARGEST_TOKENS else None
    assert heard.input_tokens == expected


def test_a_call_that_claims_the_impossible_takes_no_neighbour_s_record_along(tmp_path: Path) -> None:
    home = Home(tmp_path)
    declare(home, (EngineSpec(name="scripted", kind="scripted"),), (ModelSpec(name="m", engine="scripted"),))
    put(home, [{}, {}])

    def end(call: str, **more: Any) -> SettledCall:
        return SettledCall(id=call, settled_at=time.time(), outcome="ok", ended_by="model", **more)

    with closing(connect(home.database)) as connection:
        tx = Transaction(connection)
        mad = end("c0", usage=Usage(input_tokens=10**40), cost_usd=1e300)
        assert records.settle_calls(tx, [mad, end("c1", cost_usd=0.5)]) == 2
        assert [records.find_call(tx, call).cost_usd for call in ("c0", "c1")] == [None, 0.5]
