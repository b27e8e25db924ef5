"""Records reach the store in groups, in order, once; a store that fails loses none."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest

from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.records import CallRecords, recorded
from crocevia.storage.database import Database
from crocevia.storage.migrate import migrate
from crocevia.storage.record_queries import CallFilter, page
from crocevia.storage.records import FallbackCall, OpenedCall, SettledCall, find_call
from tests.aio import run


def opened(number: int) -> OpenedCall:
    return OpenedCall(id=f"call_{number:06}", started_at=float(number), door="test", catalogue_revision=1)


def settled(number: int) -> SettledCall:
    return SettledCall(id=f"call_{number:06}", settled_at=float(number), outcome="ok", ended_by="model")


def test_every_record_is_written_and_settled(tmp_path: Any) -> None:
    migrate(tmp_path / "crocevia.db")

    async def work() -> list[Any]:
        database = Database(tmp_path / "crocevia.db")
        records = CallRecords(database)
        for number in range(2000):
            records.open(opened(number))
            records.put(settled(number))
        records.flush()
        await database.write(lambda tx: None)
        rows = await database.read(lambda tx: page(tx, CallFilter(), 5000))
        assert not records.failing
        await database.close()
        return rows

    rows = run(work())
    assert len(rows) == 2000
    assert {row.outcome for row in rows} == {"ok"}


class Desk:
    """A store that runs what it is given when told to."""

    failing_since: float | None = None

    def __init__(self) -> None:
        self.posted: list[Any] = []
        self.submitted: list[Any] = []

    def post(self, work: Any) -> None:
        self.posted.append(work)

    def submit(self, work: Any, done: Any, *, kept: bool) -> None:
        assert kept
        self.submitted.append((work, done))


class Paper:
    def __init__(self) -> None:
        self.rows = 0
        self.fail = False

    def run_many(self, statement: Any, rows: list[Any]) -> int:
        if self.fail:
            raise OSError
        self.rows += len(rows)
        return len(rows)


def test_ends_of_a_moment_cost_one_post_and_a_retry_writes_the_same() -> None:
    desk, paper = Desk(), Paper()

    async def work() -> None:
        records = CallRecords(desk, gather=0.01)
        for number in range(100):
            records.put(settled(number))
        assert desk.posted == []
        while not desk.posted:
            await asyncio.sleep(0)
        records.put(settled(1))
        records.flush()
        records.flush()

    run(work())
    assert len(desk.posted) == 2
    paper.fail = True
    with pytest.raises(OSError):
        desk.posted[0](paper)
    paper.fail = False
    desk.posted[0](paper)
    assert paper.rows == 100
    desk.posted[1](paper)
    assert paper.rows == 101


def test_a_call_after_a_pause_is_written_at_once_and_those_that_come_meanwhile_together() -> None:
    async def work() -> None:
        desk = Desk()
        records = CallRecords(desk, opening=0.001)
        first = records.open(opened(1))
        await asyncio.sleep(0)
        assert len(desk.submitted) == 1
        others = [records.open(opened(number)) for number in range(2, 50)]
        await asyncio.sleep(0)
        assert len(desk.submitted) == 1  # the store has one group of calls at a time
        desk.submitted[0][1](None, None)
        await recorded(first)
        while len(desk.submitted) < 2:
            await asyncio.sleep(0)
        paper = Paper()
        desk.submitted[1][0](paper)
        assert paper.rows == 48
        assert not any(waiting.done() for waiting in others)
        desk.submitted[1][1](None, None)
        await asyncio.gather(*map(recorded, others))

    run(work())


def test_a_call_is_written_before_how_it_ended() -> None:
    async def work() -> None:
        desk = Desk()
        records = CallRecords(desk)
        records.open(opened(1))
        records.put(settled(1))
        records.flush()
        assert (len(desk.submitted), len(desk.posted)) == (1, 1)

    run(work())


def test_calls_that_the_store_does_not_take_are_refused(tmp_path: Any) -> None:
    migrate(tmp_path / "crocevia.db")

    async def work() -> None:
        database = Database(tmp_path / "crocevia.db")
        records = CallRecords(database)
        (tmp_path / "crocevia.db").rename(tmp_path / "elsewhere.db")
        with pytest.raises(GatewayError) as refused:
            await recorded(records.open(opened(1)))
        assert refused.value.reason is Reason.UNAVAILABLE
        assert records.failing
        (tmp_path / "elsewhere.db").rename(tmp_path / "crocevia.db")
        await recorded(records.open(opened(2)))
        assert not records.failing
        await database.close()
        with pytest.raises(GatewayError):
            await recorded(records.open(opened(3)))

    run(work())


def test_a_busy_store_holds_up_only_calls_that_must_be_recorded_and_takes_all_of_them_later(tmp_path: Any) -> None:
    migrate(tmp_path / "crocevia.db")

    async def work() -> list[Any]:
        database = Database(tmp_path / "crocevia.db")
        records = CallRecords(database, patience=0.05)
        blocker = sqlite3.connect(tmp_path / "crocevia.db", isolation_level=None)
        blocker.execute("BEGIN EXCLUSIVE")
        free, bound = records.open(opened(1)), records.open(opened(2))
        assert await recorded(free, must=False) is False
        with pytest.raises(GatewayError) as refused:
            await recorded(bound)
        assert (refused.value.reason, refused.value.retry_after) == (Reason.UNAVAILABLE, 1)
        assert (records.late, records.failing) == (2, False)
        for number in (1, 2):  # it ends before its row is there
            records.put(settled(number))
        records.flush()
        blocker.execute("ROLLBACK")
        blocker.close()
        records.open(opened(3))
        records.flush()
        await database.write(lambda tx: None)
        rows = await database.read(lambda tx: page(tx, CallFilter(), 10))
        await database.close()
        return rows

    assert sorted((row.id, row.outcome) for row in run(work())) == [
        (opened(1).id, "ok"),
        (opened(2).id, "ok"),
        (opened(3).id, None),
    ]


def test_what_a_store_refuses_for_a_while_is_written_in_order_when_it_takes_it(tmp_path: Any) -> None:
    migrate(tmp_path / "crocevia.db")

    async def work() -> list[Any]:
        database = Database(tmp_path / "crocevia.db")
        records = CallRecords(database, patience=0.05)
        (tmp_path / "crocevia.db").rename(tmp_path / "elsewhere.db")
        with pytest.raises(GatewayError):  # it cannot be written, which is told of every call
            await recorded(records.open(opened(1)), must=False)
        records.put(settled(1))
        records.flush()
        (tmp_path / "elsewhere.db").rename(tmp_path / "crocevia.db")
        while records.failing:
            await asyncio.sleep(0.005)
        records.open(opened(2))
        records.flush()
        await database.write(lambda tx: None)
        rows = await database.read(lambda tx: page(tx, CallFilter(), 10))
        await database.close()
        return rows

    assert sorted((row.id, row.outcome) for row in run(work())) == [(opened(1).id, "ok"), (opened(2).id, None)]


def test_a_record_that_cannot_be_written_takes_no_other_along(tmp_path: Any) -> None:
    migrate(tmp_path / "crocevia.db")

    async def work() -> list[Any]:
        database = Database(tmp_path / "crocevia.db")
        records = CallRecords(database)
        waiting = [records.open(opened(number)) for number in (1, 2, 2, 3)]
        outcomes = await asyncio.gather(*map(recorded, waiting), return_exceptions=True)
        assert [outcome is True for outcome in outcomes] == [True, True, False, True]
        await recorded(records.open(opened(4)))
        rows = await database.read(lambda tx: page(tx, CallFilter(), 10))
        await database.close()
        return rows

    assert len(run(work())) == 4


def test_a_call_whose_caller_left_is_written_all_the_same(tmp_path: Any) -> None:
    migrate(tmp_path / "crocevia.db")

    async def work() -> list[Any]:
        database = Database(tmp_path / "crocevia.db")
        records = CallRecords(database)
        left = asyncio.create_task(recorded(records.open(opened(1))))
        await asyncio.sleep(0)
        left.cancel()
        await recorded(records.open(opened(2)))
        rows = await database.read(lambda tx: page(tx, CallFilter(), 10))
        await database.close()
        return rows

    assert len(run(work())) == 2


def test_another_model_that_is_asked_is_noted_with_what_is_reserved_for_it(tmp_path: Any) -> None:
    migrate(tmp_path / "crocevia.db")

    async def work() -> Any:
        database = Database(tmp_path / "crocevia.db")
        records = CallRecords(database)
        await recorded(records.open(opened(1)))
        await recorded(records.open(FallbackCall(id=opened(1).id, model="b", engine="e", reserved_usd=0.5)))
        row = await database.read(lambda tx: find_call(tx, opened(1).id))
        await database.close()
        return row

    row = run(work())
    assert (row.model, row.engine, row.reserved_usd, row.settled_at) == ("b", "e", 0.5, None)
