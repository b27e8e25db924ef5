"""Appends on their way to the disk: what waits at the same time is written by one work, in the order of the calls.

Plain appends (entries and nothing else) share one statement. An append with rows of its own, or one that fails, has
a savepoint to itself, so that it takes nobody along.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from crocevia.core.errors import GatewayError
from crocevia.core.turn.entries import PUBLIC, TERMINAL, Entry, TurnOpened, encode
from crocevia.log.commands import unread
from crocevia.log.pending import TRACKED, track
from crocevia.log.values import Appended, Effect, Fence, Fenced, TurnOpen, Unread
from crocevia.storage.database import Database, Transaction, is_store_failure

PLACE: Final = (
    "SELECT l.fence, l.epoch, l.turn, j.seq, j.sub FROM chat_logs l LEFT JOIN journal j ON j.log = l.id"
    " WHERE l.id = ? ORDER BY j.seq DESC, j.sub DESC LIMIT 1"
)
_INSERT: Final = "INSERT INTO journal (log, seq, sub, body) VALUES (?, ?, ?, ?)"
_TOGETHER: Final = 4096  # appends in one work, at most
_REMEMBERED: Final = 10_000  # places of chats
_CHANGES_ROWS: Final = TRACKED | {TurnOpened, *TERMINAL}  # entries that change rows beside the journal

Record = tuple[int, int, int, bytes]


class Append:
    """One append on its way to the disk."""

    __slots__ = ("bodies", "done", "effects", "entries", "fence", "plain", "public", "read_upto")

    def __init__(
        self, fence: Fence, entries: Sequence[Entry], effects: Sequence[Effect], read_upto: int | None
    ) -> None:
        kinds = list(map(type, entries))
        self.fence = fence
        self.entries = entries
        self.effects = effects
        self.read_upto = read_upto
        self.bodies = list(map(encode, entries))
        self.public = list(map(PUBLIC.__contains__, kinds))
        self.plain = not effects and _CHANGES_ROWS.isdisjoint(kinds)
        """Nothing but entries that change no other row."""
        self.done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        """What its caller waits for."""


class Appends:
    """The appends of one log; use it from one event loop. written: told of each that is durable, before its caller."""

    def __init__(self, database: Database, written: Callable[[Append, Appended], None]) -> None:
        self._database = database
        self._written = written
        self._open: list[Append] | None = None  # written by a work that has not begun
        self._lock = threading.Lock()  # between the event loop, which fills it, and the writer, which takes it

    def add(self, item: Append) -> None:
        """Queue it. Raises GatewayError(UNAVAILABLE) after the store was closed."""
        with self._lock:
            group = self._open
            if group is not None and len(group) < _TOGETHER:
                group.append(item)
                return
            group = self._open = [item]
        try:
            self._database.submit(
                lambda tx: self._write(tx, group), lambda outcomes, error: self._settle(group, outcomes, error)
            )
        except GatewayError:
            self.seal()
            raise

    def seal(self) -> None:
        """Whatever is appended from now on is written after what is queued now."""
        with self._lock:
            self._open = None

    def _write(self, tx: Transaction, group: list[Append]) -> list[Appended | Exception]:
        with self._lock:
            if self._open is group:
                self._open = None
        return write(tx, group)

    def _settle(
        self, group: list[Append], outcomes: list[Appended | Exception] | None, error: Exception | None
    ) -> None:
        if error is not None:
            outcomes = [error] * len(group)
        for item, outcome in zip(group, outcomes or (), strict=True):
            if isinstance(outcome, Appended):
                self._written(item, outcome)  # also if its caller has gone: it is in the log
            if item.done.done():
                continue
            if isinstance(outcome, Appended):
                item.done.set_result(outcome)
            else:
                item.done.set_exception(outcome)


# --- the writer's thread


class _Place:
    """Where a chat's log ends, who may write there, and which turn is open."""

    __slots__ = ("epoch", "log", "seq", "sub", "token", "turn")

    def __init__(self, log: int, row: tuple[int, str, str | None, int | None, int | None]) -> None:
        self.log = log
        self.token, self.epoch, self.turn = row[:3]
        self.seq, self.sub = row[3] or 0, row[4] or 0

    def number(self, item: Append, records: list[Record]) -> Appended:
        """Give its entries their places, as rows."""
        first = self.seq + 1
        for body, shown in zip(item.bodies, item.public, strict=True):
            if shown:
                self.seq, self.sub = self.seq + 1, 0
            else:
                self.sub += 1
            records.append((self.log, self.seq, self.sub, body))
        return Appended(first, self.seq, self.epoch)


def forget_place(tx: Transaction, log: int) -> None:
    """Another node may write there now."""
    _places(tx).pop(log, None)


def _places(tx: Transaction) -> dict[int, _Place]:
    places: dict[int, _Place] = tx.memory.setdefault(_Place, {})
    return places


def _place(tx: Transaction, fence: Fence) -> _Place:
    """Raises Fenced."""
    places = _places(tx)
    place = places.get(fence.log)
    if place is None:
        row = tx.connection.execute(PLACE, (fence.log,)).fetchone()
        if row is None:
            raise Fenced(fence.chat)
        if len(places) >= _REMEMBERED:
            places.clear()
        place = places[fence.log] = _Place(fence.log, row)
    if place.token != fence.token or place.epoch != fence.epoch:
        raise Fenced(fence.chat)
    return place


def write(tx: Transaction, group: list[Append]) -> list[Appended | Exception]:
    """What became of each, in order. Raises only what concerns the store."""
    outcomes: list[Appended | Exception] = []
    plain: list[Append] = []
    for item in group:
        if item.plain:
            plain.append(item)
            continue
        outcomes += _write_plain(tx, plain)
        plain = []
        outcomes.append(_write_alone(tx, item))
    return outcomes + _write_plain(tx, plain)


def _write_plain(tx: Transaction, group: list[Append]) -> list[Appended | Exception]:
    """With one statement; if it fails, each with its own."""
    if len(group) < 2:
        return [_write_alone(tx, item) for item in group]
    records: list[Record] = []
    outcomes: list[Appended | Exception] = []
    for item in group:
        try:
            outcomes.append(_place(tx, item.fence).number(item, records))
        except Fenced as error:
            outcomes.append(error)
    if _attempt(tx, lambda: _insert(tx, records)) is None:
        return outcomes
    return [_write_alone(tx, item) for item in group]


def _write_alone(tx: Transaction, item: Append) -> Appended | Exception:
    done: list[Appended] = []
    error = _attempt(tx, lambda: done.append(_write_one(tx, item)))
    return done[0] if error is None else error


def _attempt(tx: Transaction, work: Callable[[], Any]) -> Exception | None:
    """Do it or nothing of it; why not. Raises only what concerns the store."""
    execute = tx.connection.execute
    execute("SAVEPOINT append")
    try:
        work()
    except Exception as error:
        if is_store_failure(error):
            raise
        tx.memory.clear()
        execute("ROLLBACK TO append")
        execute("RELEASE append")
        return error
    execute("RELEASE append")
    return None


def _write_one(tx: Transaction, item: Append) -> Appended:
    place = _place(tx, item.fence)
    records: list[Record] = []
    done = place.number(item, records)
    _insert(tx, records)
    for effect in item.effects:  # first: a repeated key is a better answer than «a turn is open»
        effect(tx, done)
    if not item.plain:
        track(tx, place.log, item.entries)
        _follow_turn(tx, place, item)
    return done


def _insert(tx: Transaction, records: list[Record]) -> None:
    if len(records) == 1:  # executemany costs twice as much for one
        tx.connection.execute(_INSERT, records[0])
    else:
        tx.connection.executemany(_INSERT, records)


def _follow_turn(tx: Transaction, place: _Place, item: Append) -> None:
    """The chat's open turn is a row that agrees with the journal, because it is written with it."""
    for entry in item.entries:
        if item.read_upto is not None and unread(tx, place.log, entry, item.read_upto):
            raise Unread(entry.turn)
        if isinstance(entry, TurnOpened):
            if place.turn is not None:
                raise TurnOpen(place.turn)
            place.turn = entry.turn
            tx.connection.execute("UPDATE chat_logs SET turn = ? WHERE id = ?", (entry.turn, place.log))
        elif isinstance(entry, TERMINAL):
            place.turn = None
            tx.connection.execute("UPDATE chat_logs SET turn = NULL WHERE id = ?", (place.log,))
