"""What happened to each client-tool call, kept where a crash cannot lose it.

A call is keyed by (chat_id, call_id). `claim` is recorded before the handler runs, so whatever happens next, it runs
at most once. A call that is `started` by somebody else (a process that died, or another that lives) is ambiguous:
nobody but the application can say what became of it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Literal, Protocol, TypeAlias

import msgspec

State: TypeAlias = Literal["started", "finished", "resolved"]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """started: the handler may have run. finished: `output` is known, its delivery is not. resolved: over."""

    chat_id: str
    call_id: str
    tool: str
    fingerprint: str
    state: State
    owner: str
    output: str | None
    is_error: bool
    note: str
    updated_at: float

    def __repr__(self) -> str:
        return f"<Record {self.call_id} {self.state}>"


class Ledger(Protocol):
    """Any store that keeps these promises will do; each method is atomic and durable when it returns."""

    def claim(self, chat_id: str, call_id: str, tool: str, fingerprint: str, owner: str) -> Record | None:
        """Record `started` and return None, or return the record that is already there, untouched."""

    def finish(self, chat_id: str, call_id: str, output: str, is_error: bool) -> None:
        """The handler's outcome, before it is delivered. Only a `started` call can finish."""

    def resolve(self, chat_id: str, call_id: str, note: str) -> None:
        """The call is over (delivered, or the server has a result). Creates the record if there is none."""

    def note(self, chat_id: str, call_id: str, note: str) -> None:
        """Remember how the last delivery attempt went."""

    def get(self, chat_id: str, call_id: str) -> Record | None: ...

    def unsettled(self, chat_id: str | None = None) -> list[Record]:
        """Calls that are `started` or `finished`, oldest first: what to reconcile after a crash."""


SCHEMA = """
CREATE TABLE IF NOT EXISTS tool_calls (
    chat_id TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, fingerprint TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('started', 'finished', 'resolved')), owner TEXT NOT NULL,
    output TEXT, is_error INTEGER NOT NULL DEFAULT 0, note TEXT NOT NULL DEFAULT '', updated_at REAL NOT NULL,
    PRIMARY KEY (chat_id, call_id)
) STRICT, WITHOUT ROWID
"""
IDENTITY = "CREATE TABLE IF NOT EXISTS identity (one INTEGER PRIMARY KEY CHECK (one = 1), holder TEXT NOT NULL) STRICT"
NAMED = "INSERT INTO identity VALUES (1, ?) ON CONFLICT DO NOTHING"
COLUMNS = "chat_id, call_id, tool, fingerprint, state, owner, output, is_error, note, updated_at"
CLAIM = "INSERT INTO tool_calls VALUES (?, ?, ?, ?, 'started', ?, NULL, 0, '', ?) ON CONFLICT DO NOTHING"
FINISH = (
    "UPDATE tool_calls SET state = 'finished', output = ?, is_error = ?, updated_at = ?"
    " WHERE chat_id = ? AND call_id = ? AND state = 'started'"
)
# A resolved call needs no output any more: it is not kept at rest longer than it has to be.
RESOLVE = (
    "INSERT INTO tool_calls VALUES (?, ?, '', '', 'resolved', '', NULL, 0, ?, ?)"
    " ON CONFLICT DO UPDATE SET state = 'resolved', output = NULL, note = excluded.note,"
    " updated_at = excluded.updated_at"
)
NOTE = "UPDATE tool_calls SET note = ?, updated_at = ? WHERE chat_id = ? AND call_id = ?"
ONE = f"SELECT {COLUMNS} FROM tool_calls WHERE chat_id = ? AND call_id = ?"  # noqa: S608  # constants
FORGET = "DELETE FROM tool_calls WHERE state = 'resolved' AND updated_at < ?"
UNSETTLED = (
    f"SELECT {COLUMNS} FROM tool_calls"  # noqa: S608  # constants
    " WHERE state != 'resolved' AND (? IS NULL OR chat_id = ?) ORDER BY updated_at"
)


class SqliteLedger:
    """The default ledger: one SQLite file, readable by its owner only, synced at every step.

    Several processes may share a file. `path` may be ":memory:" for a ledger that dies with the process.
    """

    def __init__(self, path: str | Path) -> None:
        if str(path) != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(SCHEMA)
        self._db.execute(IDENTITY)
        self._db.execute(NAMED, (str(uuid.uuid4()),))
        self.holder = str(self._db.execute("SELECT holder FROM identity").fetchone()[0])
        """Under which name calls are claimed from the server: the ledger's, so that its next life has them still."""

    def claim(self, chat_id: str, call_id: str, tool: str, fingerprint: str, owner: str) -> Record | None:
        with self._transaction():
            row = (chat_id, call_id, tool, fingerprint, owner, time())
            if self._db.execute(CLAIM, row).rowcount:
                return None
            return self._one(chat_id, call_id)

    def finish(self, chat_id: str, call_id: str, output: str, is_error: bool) -> None:
        with self._transaction():
            self._db.execute(FINISH, (output, is_error, time(), chat_id, call_id))

    def resolve(self, chat_id: str, call_id: str, note: str) -> None:
        with self._transaction():
            self._db.execute(RESOLVE, (chat_id, call_id, note, time()))

    def note(self, chat_id: str, call_id: str, note: str) -> None:
        with self._transaction():
            self._db.execute(NOTE, (note, time(), chat_id, call_id))

    def get(self, chat_id: str, call_id: str) -> Record | None:
        with self._lock:
            return self._one(chat_id, call_id)

    def unsettled(self, chat_id: str | None = None) -> list[Record]:
        with self._lock:
            return [record(row) for row in self._db.execute(UNSETTLED, (chat_id, chat_id))]

    def forget(self, older_than: float) -> int:
        """Drop resolved calls untouched for `older_than` seconds -> how many. Keep them longer than any replay."""
        with self._transaction():
            return self._db.execute(FORGET, (time() - older_than,)).rowcount

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _one(self, chat_id: str, call_id: str) -> Record | None:
        row = self._db.execute(ONE, (chat_id, call_id)).fetchone()
        return record(row) if row else None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


def record(row: tuple[object, ...]) -> Record:
    return msgspec.convert(dict(zip(Record.__struct_fields__, row, strict=True)), Record, strict=False)


def default_ledger_path() -> Path:
    """Where the ledger lives unless the application says otherwise: the user's state folder."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "envai-client" / "tools.sqlite3"
