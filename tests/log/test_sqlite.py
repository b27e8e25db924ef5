"""The SQLite backend keeps the promises of every log, and some of its own."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crocevia.core.turn.entries import Unreadable
from crocevia.log import Fenced
from crocevia.log.appends import PLACE
from crocevia.log.sqlite import _READ, _REPLAY, _STATE
from crocevia.storage.database import connect
from tests.aio import run

from .conformance import LogPromises, delta, owned
from .conftest import Opener


class TestSqliteLog(LogPromises):
    pass


def test_a_cancelled_append_may_have_committed_and_readers_hear_of_it(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            fence = await owned(log)
            await log.append(fence, [delta("a")])
            ring = log._hub.ring("c1")
            task = asyncio.ensure_future(log.append(fence, [delta("b")]))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while ring.head < 2:
                await asyncio.sleep(0.001)
            assert [row.seq for row in await log.read("c1", 1)] == [2]
            assert (await log.append(fence, [delta("c")])).first == 3

    run(scenario())


@pytest.mark.parametrize(("sql", "params"), [(_STATE, ("c",)), (PLACE, (1,)), (_READ, ("c", 5, 10)), (_REPLAY, ("c",))])
def test_hot_statements_sort_nothing_and_scan_no_table(store: Path, sql: str, params: tuple[object, ...]) -> None:
    with closing(connect(store)) as connection:
        plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + sql, params)]
    assert plan
    assert not [step for step in plan if "TEMP B-TREE" in step or step.startswith("SCAN")]


def test_a_journal_that_was_damaged_is_refused_not_guessed(open_log: Opener, store: Path) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            fence = await owned(log)
            await log.append(fence, [delta("a"), delta("b")])
            with closing(sqlite3.connect(store)) as connection:
                connection.execute("UPDATE journal SET body = x'7b22' WHERE seq = 1")
                connection.commit()
            with pytest.raises(Unreadable):
                await log.replay("c1")

    run(scenario())


def test_a_hundred_chats_in_one_process_do_not_mix(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            fences = await asyncio.gather(*[owned(log, f"c{i}") for i in range(100)])
            await asyncio.gather(*[log.append(fence, [delta(fence.chat)]) for fence in fences for _ in range(10)])
            for fence in fences:
                rows = await log.read(fence.chat, 0)
                assert [row.seq for row in rows] == list(range(1, 11))
                assert all(f'"{fence.chat}"'.encode() in row.body for row in rows)
            with pytest.raises(Fenced):
                await log.append(fences[0]._replace(token=99), [delta("x")])

    run(scenario())
