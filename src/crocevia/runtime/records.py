"""What a finished or running call leaves behind, written in groups and never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from crocevia.storage.records import OpenedCall, SettledCall, open_calls, settle_calls

if TYPE_CHECKING:
    from crocevia.storage.database import Transaction


GATHER_SECONDS: Final = 0.025


class Poster(Protocol):
    """The part of `storage.database.Database` that is needed here."""

    failing_since: float | None

    def post(self, work: Callable[[Transaction], object]) -> None: ...


class CallRecords:
    """Queues records for the store. What comes within `gather` seconds is one unit of work: one wake-up of the
    writer's thread, which would otherwise fight the event loop for the interpreter at every call, and one commit, which
    costs as much as many rows.
    """

    __slots__ = ("_database", "_gather", "_timer", "_waiting")

    def __init__(self, database: Poster, *, gather: float = GATHER_SECONDS) -> None:
        self._database = database
        self._gather = gather
        self._waiting: list[OpenedCall | SettledCall] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def failing(self) -> bool:
        """Whether the store takes nothing at the moment. What is queued waits for it."""
        return self._database.failing_since is not None

    def put(self, record: OpenedCall | SettledCall) -> None:
        """Queue a record; it is written in order, and retried until it is."""
        self._waiting.append(record)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._gather, self.flush)

    def flush(self) -> None:
        """Hand what is queued to the store now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._database.post(lambda tx: _write(tx, waiting))


def _write(tx: Transaction, records: list[OpenedCall | SettledCall]) -> None:
    open_calls(tx, [record for record in records if isinstance(record, OpenedCall)])
    settle_calls(tx, [record for record in records if isinstance(record, SettledCall)])
