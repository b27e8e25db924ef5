"""Records reach the store in groups, in order, once; a store that fails loses none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crocevia.runtime.records import CallRecords
from crocevia.storage.database import Database
from crocevia.storage.migrate import migrate
from crocevia.storage.record_queries import CallFilter, page
from crocevia.storage.records import OpenedCall, SettledCall
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
            records.put(opened(number))
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
    """A store that runs what is posted when told to."""

    failing_since: float | None = None

    def __init__(self) -> None:
        self.posted: list[Any] = []

    def post(self, work: Any) -> None:
        self.posted.append(work)


class Paper:
    def __init__(self) -> None:
        self.rows = 0
        self.fail = False

    def run_many(self, statement: Any, rows: list[Any]) -> int:
        if self.fail:
            raise OSError
        self.rows += len(rows)
        return len(rows)


def test_records_of_a_moment_cost_one_post_and_a_retry_writes_the_same() -> None:
    desk, paper = Desk(), Paper()

    async def work() -> None:
        records = CallRecords(desk, gather=0.01)
        for number in range(100):
            records.put(opened(number))
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
