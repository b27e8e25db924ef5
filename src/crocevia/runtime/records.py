"""What a finished or running call leaves behind, written in groups and never waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from crocevia.storage.records import OpenedCall, SettledCall, open_calls, settle_calls

if TYPE_CHECKING:
    from crocevia.storage.database import Transaction


class Poster(Protocol):
    """The part of `storage.database.Database` that is needed here."""

    failing_since: float | None

    def post(self, work: Callable[[Transaction], object]) -> None: ...


class CallRecords:
    """Queues records for the store. However many calls end at once, they cost the loop one `post`."""

    __slots__ = ("_database", "_posted", "_waiting")

    def __init__(self, database: Poster) -> None:
        self._database = database
        self._waiting: deque[OpenedCall | SettledCall] = deque()
        self._posted = False

    @property
    def failing(self) -> bool:
        """Whether the store takes nothing at the moment. What is queued waits for it."""
        return self._database.failing_since is not None

    def put(self, record: OpenedCall | SettledCall) -> None:
        """Queue a record; it is written in order, and retried until it is."""
        self._waiting.append(record)
        if not self._posted:
            self._posted = True
            self._database.post(_Group(self))

    def take(self) -> list[OpenedCall | SettledCall]:
        """Everything queued so far. Called by the writer's thread."""
        # The flag falls first: whoever appends after the drain finds it down and posts again.
        self._posted = False
        taken: list[OpenedCall | SettledCall] = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken


class _Group:
    """One unit of work. What it took stays with it, so that a retry writes the same."""

    __slots__ = ("_records", "_taken")

    def __init__(self, records: CallRecords) -> None:
        self._records = records
        self._taken: list[OpenedCall | SettledCall] | None = None

    def __call__(self, tx: Transaction) -> None:
        if self._taken is None:
            self._taken = self._records.take()
        open_calls(tx, [record for record in self._taken if isinstance(record, OpenedCall)])
        settle_calls(tx, [record for record in self._taken if isinstance(record, SettledCall)])
