from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Boolean, Column, Float, Integer, MetaData, Table, Text, bindparam, func, insert, select, update

from crocevia.core.errors import Code, GatewayError
from crocevia.storage.database import Database, Transaction
from crocevia.storage.statements import CACHED, StatementCache
from tests.aio import run

notes = Table("notes", MetaData(), Column("id", Integer, primary_key=True), Column("body", Text))
ADD = insert(notes)
IDS = select(notes.c.id).order_by(notes.c.id)


def add(number: int, body: str = "") -> Callable[[Transaction], int]:
    return lambda tx: tx.run(ADD, id=number, body=body)


def ids(tx: Transaction) -> list[int]:
    return [row.id for row in tx.all(IDS)]


def execute(sql: str) -> Callable[[Transaction], None]:
    return lambda tx: tx.connection.execute(sql) and None


@asynccontextmanager
async def opened(tmp_path: Path, **options: Any) -> AsyncIterator[Database]:
    db = Database(tmp_path / "notes.db", **options)
    await db.write(execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT)"))
    try:
        yield db
    finally:
        await db.close(timeout=0.5)


async def held(db: Database) -> threading.Event:
    """Keep the writer busy, so that whatever comes next shares one group; set the event to let it go."""
    go, started = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait(tx: Transaction) -> None:
        loop.call_soon_threadsafe(started.set)
        assert go.wait(10)

    db.post(wait)
    await started.wait()
    return go


def test_a_write_returns_its_value_and_readers_see_it(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:
            assert await db.write(add(1, "ciao")) == 1
            assert await db.read(lambda tx: tx.first(select(notes))) == (1, "ciao")

    run(check())


def test_a_failing_work_undoes_itself_and_nobody_else(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:
            go = await held(db)

            def half(tx: Transaction) -> None:
                add(50)(tx)
                raise LookupError("mine")

            works = [add(1), half, add(2), add(1), add(3)]
            writes = [asyncio.ensure_future(db.write(work)) for work in works]
            await asyncio.sleep(0)
            go.set()
            results = await asyncio.gather(*writes, return_exceptions=True)
            assert [type(result) for result in results] == [int, LookupError, int, sqlite3.IntegrityError, int]
            assert await db.read(ids) == [1, 2, 3]

    run(check())


def test_what_waits_together_is_committed_together(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:
            go = await held(db)
            seen: list[str] = []
            db._connection.set_trace_callback(seen.append)
            writes = [asyncio.ensure_future(db.write(add(number))) for number in range(100)]
            await asyncio.sleep(0)
            go.set()
            await asyncio.gather(*writes)
            assert 1 <= seen.count("COMMIT") <= 2  # the held group may commit under the trace too

    run(check())


def test_a_cancelled_caller_does_not_cancel_its_write(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:
            go = await held(db)
            write = asyncio.ensure_future(db.write(add(7)))
            await asyncio.sleep(0)
            write.cancel()
            with pytest.raises(asyncio.CancelledError):
                await write
            go.set()
            await db.write(add(8))
            assert await db.read(ids) == [7, 8]

    run(check())


def test_writes_wait_for_room_and_posts_never_do(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path, backlog=2) as db:
            go = await held(db)
            writes = [asyncio.ensure_future(db.write(add(number))) for number in range(5)]
            for _ in range(5):
                await asyncio.sleep(0)
            assert db._queue.qsize() == 2
            db.post(add(100))
            assert db._queue.qsize() == 3
            writes[4].cancel()  # still waiting for room: never written
            go.set()
            await asyncio.gather(*writes, return_exceptions=True)
            assert await db.read(ids) == [0, 1, 2, 3, 100]

    run(check())


def test_posts_are_written_in_order_and_before_a_later_write_returns(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:
            for number in range(1000):
                db.post(lambda tx, number=number: tx.run(ADD, id=number, body=str(len(ids(tx)) if number < 50 else 0)))
            await db.write(add(1000))
            rows = await db.read(lambda tx: tx.all(select(notes).order_by(notes.c.id)))
            assert [row.id for row in rows] == list(range(1001))
            assert [row.body for row in rows[:50]] == [str(number) for number in range(50)]

    run(check())


def test_a_post_that_can_never_succeed_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    reported: list[Exception] = []

    async def check() -> None:
        async with opened(tmp_path, report=reported.append) as db:
            db.post(add(1))
            db.post(add(1))
            db.post(add(2))
            await db.write(lambda tx: None)
            assert await db.read(ids) == [1, 2]

    run(check())
    assert [type(error) for error in reported] == [sqlite3.IntegrityError]


STORE_FAULTS = {
    "the disk is full": (
        execute("PRAGMA max_page_count = 1"),
        execute("PRAGMA max_page_count = 1000000"),
    ),
    "the file became read-only": (execute("PRAGMA query_only = ON"), execute("PRAGMA query_only = OFF")),
}


@pytest.mark.parametrize("fault", STORE_FAULTS)
def test_while_the_store_refuses_writes_fail_clearly_and_posts_are_kept(tmp_path: Path, fault: str) -> None:
    break_it, mend_it = STORE_FAULTS[fault]
    body = "x" * 9000  # more than a page: a full disk must find no room

    async def check() -> None:
        async with opened(tmp_path) as db:
            await db.write(break_it)
            db.post(add(1, body))
            db.post(add(2, body))
            with pytest.raises(GatewayError) as caught:
                await db.write(add(3, body))
            assert caught.value.code is Code.UNAVAILABLE
            assert db.failing_since is not None
            assert await db.read(ids) == []
            mend_it(Transaction(db._connection))  # type: ignore[arg-type]
            for number in range(4, 50):
                try:
                    await db.write(add(number))
                    break
                except GatewayError:
                    continue
            found = await db.read(ids)
            assert found[:2] == [1, 2]
            assert 3 not in found
            assert db.failing_since is None

    run(check(), timeout=20)


def test_a_file_that_was_moved_away_takes_no_write_until_it_is_back(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:
            away = tmp_path / "away.db"
            db.path.rename(away)
            db.post(add(1))
            with pytest.raises(GatewayError):
                await db.write(add(2))
            away.rename(db.path)
            while db.failing_since is not None:
                await asyncio.sleep(0.01)
            assert await db.read(ids) == [1]

    run(check())


def test_closing_says_how_many_posts_the_store_would_not_take(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:
            await db.write(execute("PRAGMA query_only = ON"))
            db.post(add(1))
            db.post(add(2))
            assert await db.close(timeout=0.1) == 2

    run(check())


def test_closing_writes_what_is_queued_and_then_refuses(tmp_path: Path) -> None:
    reported: list[Exception] = []

    async def check() -> None:
        async with opened(tmp_path, report=reported.append) as db:
            for number in range(500):
                db.post(add(number))
            assert await db.close() == 0
            with pytest.raises(GatewayError):
                await db.write(add(1))
            db.post(add(1))

    run(check())
    assert [type(error) for error in reported] == [GatewayError]
    with sqlite3.connect(tmp_path / "notes.db") as connection:
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (500,)
    connection.close()


def test_a_reader_cannot_write_and_sees_one_snapshot(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:
            await db.write(add(1))
            with pytest.raises(GatewayError):
                await db.read(add(2))
            loop = asyncio.get_running_loop()

            def twice(tx: Transaction) -> tuple[list[int], list[int]]:
                before = ids(tx)
                asyncio.run_coroutine_threadsafe(db.write(add(3)), loop).result(10)
                return before, ids(tx)

            assert await db.read(twice) == ([1], [1])
            assert await db.read(ids) == [1, 3]

    run(check())


def test_a_hundred_writers_and_a_reader_never_meet_a_lock(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:

            async def writer(base: int) -> None:
                for number in range(20):
                    # read, then write: what deadlocks when every task has its own connection
                    await db.write(lambda tx, n=base + number: (ids(tx)[-1:], tx.run(ADD, id=n, body="")))

            reading = True

            async def reader() -> int:
                most = 0
                while reading:
                    count = await db.read(lambda tx: tx.scalar(select(func.count()).select_from(notes)))
                    assert count >= most
                    most = count
                return most

            watching = asyncio.ensure_future(reader())
            await asyncio.gather(*(writer(base * 20) for base in range(100)))
            reading = False
            await watching
            assert await db.read(ids) == list(range(2000))

    run(check(), timeout=40)


def test_another_process_may_write_at_the_same_time(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from crocevia.storage.database import immediate\n"
        "for number in range(10**6, 10**6 + 50):\n"
        "    with immediate(Path(sys.argv[1])) as tx:\n"
        "        tx.connection.execute('INSERT INTO notes VALUES (?, ?)', (number, 'other'))"
    )

    async def check() -> None:
        async with opened(tmp_path) as db:
            other = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(db.path))
            number = 0
            while other.returncode is None:
                await db.write(add(number))
                number += 1
            assert await other.wait() == 0
            assert await db.read(ids) == [*range(number), *range(10**6, 10**6 + 50)]

    run(check(), timeout=40)


def test_acknowledged_rows_survive_a_killed_process(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path; from crocevia.storage.database import Database\n"
        "async def main():\n"
        "    db = Database(Path(sys.argv[1]))\n"
        "    await db.write(lambda tx: tx.connection.execute('CREATE TABLE notes (id INTEGER PRIMARY KEY)') and None)\n"
        "    async def one(start):\n"
        "        for number in range(start, 10**9, 8):\n"
        "            await db.write(lambda tx: tx.connection.execute('INSERT INTO notes VALUES (?)', (number,)))\n"
        "            print(number, flush=True)\n"
        "    await asyncio.gather(*(one(start) for start in range(8)))\n"
        "asyncio.run(main())"
    )
    path = tmp_path / "notes.db"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        acknowledged = [int(child.stdout.readline()) for _ in range(300)]
        child.kill()
        acknowledged += [int(line) for line in child.stdout.read().split("\n")[:-1]]
    with sqlite3.connect(path) as connection:
        stored = {number for (number,) in connection.execute("SELECT id FROM notes")}
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert set(acknowledged) <= stored


def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(GatewayError) as caught:
        Database(tmp_path / "missing" / "notes.db")
    assert caught.value.code is Code.UNAVAILABLE


def test_the_writer_commits_to_disk_before_it_answers(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:
            pragmas = ("synchronous", "journal_mode", "foreign_keys")
            values = await db.write(lambda tx: [tx.connection.execute(f"PRAGMA {p}").fetchone()[0] for p in pragmas])
            assert values == [2, "wal", 1]

    run(check())


def test_statements_convert_types_and_keep_fixed_values() -> None:
    table = Table("t", MetaData(), Column("id", Integer), Column("on", Boolean), Column("price", Float))
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute('CREATE TABLE t (id INTEGER, "on" INTEGER, price REAL)')
    tx = Transaction(connection)
    tx.run_many(insert(table), [{"id": number, "on": number % 2 == 0, "price": number / 2} for number in range(4)])
    assert tx.first(select(table).where(table.c.id == 2)) == (2, True, 1.0)
    assert tx.run(update(table).where(table.c.id == bindparam("which")).values(price=9), which=3) == 1
    assert tx.scalar(select(table.c.price).where(table.c.id == bindparam("which")), which=3) == 9.0
    assert [row.id for row in tx.all(select(table.c.id).where(table.c.id.in_([1, 2])))] == [1, 2]
    assert tx.first(select(table).where(table.c.id == bindparam("which")), which=77) is None
    assert tx.run_many(insert(table), []) == 0
    connection.close()


def test_a_python_default_is_refused_instead_of_forgotten() -> None:
    table = Table("t", MetaData(), Column("id", Integer), Column("made", Integer, default=lambda: 1))
    with pytest.raises(TypeError, match="default"):
        StatementCache().get(insert(table), {"id": 1})


def test_the_statement_cache_stays_bounded() -> None:
    cache = StatementCache()
    for number in range(CACHED + 10):
        cache.get(select(notes).where(notes.c.id == number), {})
    assert len(cache._known) <= CACHED


def test_nothing_is_left_open_after_closing(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as db:
            await asyncio.gather(*(db.read(ids) for _ in range(20)))

    before = threading.active_count()
    run(check())
    assert threading.active_count() == before
    assert not [name for name in os.listdir(tmp_path) if name.endswith(("-wal", "-shm"))]
