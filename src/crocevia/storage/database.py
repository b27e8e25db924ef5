"""One SQLite file: one thread owns the only writing connection and commits in groups; readers look on.

A unit of work is a plain function of a `Transaction`. Everything that is waiting when the writer comes round
shares one transaction and one fsync; each work has its own savepoint, so one that fails takes nobody along.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from crocevia.core.errors import GatewayError, Reason
from crocevia.storage.statements import Row, Statement, StatementCache

T = TypeVar("T")
Work: TypeAlias = Callable[["Transaction"], T]

GROUP: Final = 4096  # works in one transaction, at most
BACKLOG: Final = 20_000  # awaited works in the queue before `write` makes its caller wait
BUSY_SECONDS: Final = 10.0
FIRST_RETRY: Final = 0.05
LAST_RETRY: Final = 1.0

# Primary result codes that mean «the store», not «this work»: the whole group is tried again or given up.
_STORE_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)


class Transaction:
    """What a unit of work sees. Valid only while the work runs.

    memory: what the writer's works may remember for those that follow, of what they have read or written. It is
    emptied whenever a work is undone or another process has written.
    """

    __slots__ = ("_cache", "connection", "memory")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.memory: dict[Hashable, Any] = {}
        self._cache = StatementCache()

    def run(self, statement: Statement, **params: Any) -> int:
        """Execute; the number of rows changed."""
        compiled = self._cache.get(statement, params)
        return self.connection.execute(compiled.sql, compiled.values(params)).rowcount

    def run_many(self, statement: Statement, rows: Iterable[Mapping[str, Any]]) -> int:
        """Execute once per row; every row has the keys of the first. The number of rows changed."""
        rows = list(rows)
        if not rows:
            return 0
        compiled = self._cache.get(statement, rows[0])
        return self.connection.executemany(compiled.sql, map(compiled.values, rows)).rowcount

    def all(self, statement: Statement, **params: Any) -> list[Row]:
        """Every row, as named tuples."""
        compiled = self._cache.get(statement, params)
        return compiled.rows(self.connection.execute(compiled.sql, compiled.values(params)))

    def first(self, statement: Statement, **params: Any) -> Row | None:
        """The first row, or None."""
        compiled = self._cache.get(statement, params)
        found = self.connection.execute(compiled.sql, compiled.values(params)).fetchone()
        return None if found is None else compiled.rows((found,))[0]

    def scalar(self, statement: Statement, **params: Any) -> Any:
        """The first column of the first row, or None."""
        row = self.first(statement, **params)
        return None if row is None else row[0]


Done: TypeAlias = Callable[[Any, Exception | None], None]


class _Job(NamedTuple):
    work: Work[Any]
    loop: asyncio.AbstractEventLoop | None  # None: posted
    done: Done
    kept: bool  # tried again while the store takes nothing


class _Outcome(NamedTuple):
    job: _Job
    value: Any
    error: Exception | None


def connect(path: Path, *, query_only: bool = False) -> sqlite3.Connection:
    """A connection with our pragmas. Raises sqlite3.Error if the file cannot be opened."""
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        if query_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA journal_size_limit = 67108864")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def immediate(path: Path) -> Iterator[Transaction]:
    """One transaction from another process than the server's (the command line): locks first, commits at the end.

    Raises GatewayError(UNAVAILABLE) if the store does not take it, or stays locked for BUSY_SECONDS.
    """
    try:
        with closing(connect(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Transaction(connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise GatewayError(Reason.STORE_NOT_WRITTEN) from error


@contextmanager
def snapshot(path: Path) -> Iterator[Transaction]:
    """One reading transaction from another process. Raises GatewayError(UNAVAILABLE) if the store cannot be read."""
    try:
        with closing(connect(path, query_only=True)) as connection:
            connection.execute("BEGIN")
            yield Transaction(connection)
    except sqlite3.Error as error:
        raise GatewayError(Reason.DATABASE_UNREADABLE, reason=str(error)) from error


def damage(path: Path) -> str | None:
    """What keeps the file from being read whole and written; None: nothing."""
    try:
        with closing(connect(path)) as connection:
            checked = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        return str(error)
    if checked != "ok":
        return "quick_check"
    return None if os.access(path, os.W_OK) else "read-only"


class Database:
    """The store of a home. Use it from one event loop; `post` may be called from any thread.

    report: told of a posted work that failed by its own fault (it can never succeed, so it is not retried);
    by default the standard logger. Raises GatewayError(UNAVAILABLE) if the file cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        *,
        readers: int = 4,
        backlog: int = BACKLOG,
        report: Callable[[Exception], None] | None = None,
    ) -> None:
        self.path = path
        self.failing_because = ""  # the name of the latest error
        self.failing_since: float | None = None  # time.monotonic() of the first group in a row that was not written
        self._report = report or _log_failed_post
        try:
            self._connection = connect(path)
        except sqlite3.Error as error:
            raise GatewayError(Reason.UNAVAILABLE) from error
        self._inode = path.stat().st_ino
        self._transaction = Transaction(self._connection)
        self._version = -1  # of what other processes have written
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(backlog)
        self._closing = threading.Event()
        self._closed_by = float("inf")
        self._unwritten = 0
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="crocevia-read")
        self._reader = threading.local()
        self._reader_connections: list[sqlite3.Connection] = []
        self._writer = threading.Thread(target=self._serve, name="crocevia-write", daemon=True)
        self._writer.start()

    async def write(self, work: Work[T]) -> T:
        """Run `work` and return its value once it is durable.

        Whatever `work` raises is raised here and undoes only `work`; a store that cannot be written raises
        GatewayError(UNAVAILABLE). Waits for room in the queue. A caller cancelled after that may have written.
        """
        await self._room.acquire()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(value: T, error: Exception | None) -> None:
            self._room.release()
            if future.done():  # its caller was cancelled
                return
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        try:
            self.submit(work, done)
        except GatewayError:
            self._room.release()
            raise
        return await future

    def submit(self, work: Work[Any], done: Done, *, kept: bool = False) -> None:
        """Queue `work` and return; `done` is called in this event loop with its value once that is durable, or with
        what `write` would raise. kept: a store that takes nothing is tried again, as for `post`, and nobody is told.
        The caller bounds what it submits. Raises GatewayError(UNAVAILABLE) after `close`.
        """
        if self._closing.is_set():
            raise GatewayError(Reason.UNAVAILABLE)
        self._queue.put(_Job(work, asyncio.get_running_loop(), done, kept))

    def post(self, work: Work[object]) -> None:
        """Queue `work` and return; it is tried until it is written, in the order of posting.

        After `close` it is reported instead: nobody would write it.
        """
        if self._writer.is_alive():
            self._queue.put(_Job(work, None, _nobody, kept=True))
        else:
            self._report(GatewayError(Reason.UNAVAILABLE))

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a reader that cannot write; all its statements see one snapshot."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)
        except sqlite3.Error as error:
            if is_store_failure(error):
                raise GatewayError(Reason.UNAVAILABLE) from error
            raise

    async def close(self, timeout: float = 10.0) -> int:
        """Write what is queued, then close. Returns how many posted works the store would not take in `timeout` s."""
        if not self._closing.is_set():
            self._closed_by = time.monotonic() + timeout
            self._closing.set()
            self._queue.put(None)
        await asyncio.to_thread(self._writer.join)
        self._readers.shutdown(wait=True, cancel_futures=True)
        while self._reader_connections:
            self._reader_connections.pop().close()
        return self._unwritten

    # the readers' threads

    def _read(self, work: Work[T]) -> T:
        transaction: Transaction | None = getattr(self._reader, "transaction", None)
        if transaction is None:
            transaction = self._reader.transaction = Transaction(connect(self.path, query_only=True))
            self._reader_connections.append(transaction.connection)
        transaction.connection.execute("BEGIN")
        try:
            return work(transaction)
        finally:
            transaction.connection.execute("ROLLBACK")

    # the writer's thread

    def _serve(self) -> None:
        kept: list[_Job] = []
        delay = 0.0
        open_ = True
        while open_ or kept:
            if kept:
                self._closing.wait(delay) if open_ else time.sleep(delay)
            open_, batch = self._drain(kept, open_)
            kept = self._commit(batch)
            delay = min(max(FIRST_RETRY, delay * 2), LAST_RETRY) if kept else 0.0
            if kept and not open_ and time.monotonic() > self._closed_by:
                self._unwritten = len(kept)
                break
        self._connection.close()

    def _drain(self, kept: list[_Job], open_: bool) -> tuple[bool, list[_Job]]:
        batch = list(kept)
        try:
            if not batch and open_:
                first = self._queue.get()
                if first is None:
                    open_ = False
                else:
                    batch.append(first)
            while len(batch) < GROUP or not open_:
                job = self._queue.get_nowait()
                if job is None:
                    open_ = False
                else:
                    batch.append(job)
        except queue.Empty:
            pass
        return open_, batch

    def _commit(self, batch: list[_Job]) -> list[_Job]:
        """Write one group; the works to try again if the store would not."""
        if not batch:
            return []
        try:
            self._check_file()
            self._connection.execute("BEGIN IMMEDIATE")
            self._look_for_others()
            outcomes = [self._attempt(job) for job in batch]
            self._connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            self._roll_back()
            self.failing_because = getattr(error, "sqlite_errorname", type(error).__name__)
            if self.failing_since is None:
                self.failing_since = time.monotonic()
            refused = GatewayError(Reason.UNAVAILABLE)
            refused.__cause__ = error
            self._settle([_Outcome(job, None, refused) for job in batch if not job.kept])
            return [job for job in batch if job.kept]
        self.failing_since = None
        self._settle(outcomes)
        return []

    def _attempt(self, job: _Job) -> _Outcome:
        execute = self._connection.execute
        execute("SAVEPOINT work")
        try:
            value = job.work(self._transaction)
        except Exception as error:
            if is_store_failure(error):
                raise
            self._transaction.memory.clear()
            execute("ROLLBACK TO work")
            execute("RELEASE work")
            return _Outcome(job, None, error)
        execute("RELEASE work")
        return _Outcome(job, value, None)

    def _check_file(self) -> None:
        # A file that was moved away would still take our writes and lose them.
        if os.stat(self.path).st_ino != self._inode:  # noqa: PTH116  # once per group: a Path costs more than the stat
            raise FileNotFoundError(self.path.name)

    def _look_for_others(self) -> None:
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self._transaction.memory.clear()

    def _roll_back(self) -> None:
        self._transaction.memory.clear()
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:  # the store is gone: SQLite has rolled back by itself or will at the next BEGIN
                return

    def _settle(self, outcomes: list[_Outcome]) -> None:
        """Tell the waiting callers, one wake-up per event loop."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Outcome]] = {}
        for outcome in outcomes:
            if outcome.job.loop is not None:
                by_loop.setdefault(outcome.job.loop, []).append(outcome)
            elif outcome.error is not None:
                self._report(outcome.error)
        for loop, done in by_loop.items():
            try:
                loop.call_soon_threadsafe(_tell, done)
            except RuntimeError:  # that loop is closed: nobody is waiting any more
                continue


def _tell(outcomes: list[_Outcome]) -> None:
    for job, value, error in outcomes:
        job.done(value, error)


def _nobody(value: Any, error: Exception | None) -> None:
    """Nobody waits for what was posted."""


def is_store_failure(error: Exception) -> bool:
    """Whether it says that the store cannot be used, not that one work is wrong."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _STORE_CODES


def _log_failed_post(error: Exception) -> None:
    logging.getLogger(__name__).error("a posted write failed and was left out: %s", type(error).__name__)
