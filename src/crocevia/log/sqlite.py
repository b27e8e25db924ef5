"""The log on SQLite: every write is a unit of work of the one writer, so group commit comes from the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress, starmap
from typing import Final, TypeVar

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import ulid
from crocevia.core.turn.entries import ContextReplaced, Entry, decode, encode
from crocevia.log.appends import Append, Appends, forget_place
from crocevia.log.commands import find_command, put, read_commands
from crocevia.log.hub import Hub
from crocevia.log.trim import cut
from crocevia.log.values import Appended, Bounds, Command, CommandKind, Effect, Fence, Outcome, Row
from crocevia.storage.database import Database, Transaction, Work

T = TypeVar("T")

READ_BYTES: Final = 1024 * 1024  # of bodies in one page

_STATE = (
    "SELECT l.id, l.epoch, l.fence, l.turn, l.first_seq, j.seq, j.sub FROM chat_logs l"
    " LEFT JOIN journal j ON j.log = l.id WHERE l.chat = ? ORDER BY j.seq DESC, j.sub DESC LIMIT 1"
)
_READ = (
    "SELECT j.seq, j.body FROM journal j JOIN chat_logs l ON l.id = j.log"
    " WHERE l.chat = ? AND j.seq > ? AND j.sub = 0 ORDER BY j.seq LIMIT ?"
)
_REPLACED: Final = encode(ContextReplaced(turn="", at=0, items=())).partition(b",")[0]
_REPLAY = "SELECT body FROM journal WHERE log = (SELECT id FROM chat_logs WHERE chat = ?) ORDER BY seq, sub"


class _State:
    """A chat's place in its log, as the writer finds it."""

    __slots__ = ("epoch", "fence", "first", "id", "seq", "sub", "turn")

    def __init__(self, row: tuple[int, str, int, str | None, int, int | None, int | None]) -> None:
        self.id, self.epoch, self.fence, self.turn, self.first = row[:5]
        self.seq, self.sub = row[5] or 0, row[6] or 0


def _state(tx: Transaction, chat: str) -> _State:
    row = tx.connection.execute(_STATE, (chat,)).fetchone()
    if row is None:
        raise GatewayError(Reason.NOT_FOUND)
    return _State(row)


def create_log(tx: Transaction, chat: str) -> None:
    """The chat's log, in the transaction that makes the chat. Doing it again changes nothing."""
    tx.connection.execute("INSERT OR IGNORE INTO chat_logs (chat, epoch) VALUES (?, ?)", (chat, ulid()))


def put_command(tx: Transaction, chat: str, command: Command) -> Outcome:
    """See `values.Log.put_command`, in a transaction of the caller's. Its `id` is given here."""
    state = _state(tx, chat)
    return put(tx, state.id, state.turn, command)


def entries_of(tx: Transaction, chat: str) -> Iterator[Entry]:
    """All that the chat's log keeps, in order. Raises Unreadable."""
    for (body,) in tx.connection.execute(_REPLAY, (chat,)):
        yield decode(body)


class SqliteLog:
    """See `values.Log`. What is appended is published to `hub` as soon as it is durable."""

    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._hub = hub
        self._appends = Appends(database, self._show)

    async def create(self, chat: str) -> Bounds:
        await self._write(lambda tx: create_log(tx, chat))
        return await self.bounds(chat)

    async def append(
        self, fence: Fence, entries: Sequence[Entry], effects: Sequence[Effect] = (), *, read_upto: int | None = None
    ) -> Appended:
        item = Append(fence, entries, effects, read_upto)
        self._appends.add(item)
        return await item.done

    def _show(self, item: Append, done: Appended) -> None:
        chat, first, last = item.fence.chat, done.first, done.last
        if last >= first:
            rows = map(
                Row, range(first, last + 1), compress(item.bodies, item.public), compress(item.entries, item.public)
            )
            self._hub.publish(chat, list(rows), urgent=not item.plain)

    async def _write(self, work: Work[T]) -> T:
        """A work of its own: what was appended before it is written before it, what comes later after it."""
        self._appends.seal()
        return await self._database.write(work)

    async def read(self, chat: str, after: int, limit: int = 500) -> list[Row]:
        def work(tx: Transaction) -> list[Row]:
            rows, size = [], 0
            for row in starmap(Row, tx.connection.execute(_READ, (chat, after, limit))):
                rows.append(row)
                size += len(row.body)
                if size >= READ_BYTES:
                    break
            return rows

        return await self._database.read(work)

    async def replay(self, chat: str) -> list[Entry]:
        def work(tx: Transaction) -> list[Entry]:
            bodies = [body for (body,) in tx.connection.execute(_REPLAY, (chat,))]
            replaced = [at for at, body in enumerate(bodies) if body.startswith(_REPLACED)]
            for at in reversed(replaced):
                entry = decode(bodies[at])
                if isinstance(entry, ContextReplaced) and entry.totals is not None:
                    del bodies[:at]
                    break
            return list(map(decode, bodies))

        return await self._database.read(work)

    async def bounds(self, chat: str) -> Bounds:
        def work(tx: Transaction) -> Bounds:
            state = _state(tx, chat)
            return Bounds(state.epoch, state.first, state.seq, state.turn)

        return await self._database.read(work)

    async def acquire(self, chat: str, node: str, ttl_ms: int, now: int) -> Fence | None:
        def work(tx: Transaction) -> Fence | None:
            _state(tx, chat)
            row = tx.connection.execute(
                "UPDATE chat_logs SET fence = fence + 1, owner = ?1, lease_until = ?2 WHERE chat = ?3"
                " AND (owner IS NULL OR owner = ?1 OR lease_until <= ?4) RETURNING fence, id, epoch",
                (node, now + ttl_ms, chat, now),
            ).fetchone()
            if row is None:
                return None
            forget_place(tx, row[1])
            return Fence(chat, row[0], node, row[1], row[2])

        return await self._write(work)

    async def renew(self, fence: Fence, ttl_ms: int, now: int) -> bool:
        def work(tx: Transaction) -> bool:
            changed = tx.connection.execute(
                "UPDATE chat_logs SET lease_until = ? WHERE chat = ? AND fence = ? AND owner = ?",
                (now + ttl_ms, fence.chat, fence.token, fence.node),
            )
            return changed.rowcount == 1

        return await self._write(work)

    async def release(self, fence: Fence) -> None:
        def work(tx: Transaction) -> None:
            tx.connection.execute(
                "UPDATE chat_logs SET owner = NULL, lease_until = NULL WHERE chat = ? AND fence = ? AND owner = ?",
                (fence.chat, fence.token, fence.node),
            )

        await self._write(work)

    async def put_command(
        self, chat: str, kind: CommandKind, key: str, payload: bytes, at: int, *, turn: str | None = None
    ) -> Outcome:
        command = Command(0, turn, kind, key, payload, at)
        return await self._write(lambda tx: put_command(tx, chat, command))

    async def commands(self, chat: str, after: int = 0) -> list[Command]:
        return await self._database.read(lambda tx: read_commands(tx, chat, after))

    async def find(self, chat: str, kind: CommandKind, key: str) -> Command | None:
        return await self._database.read(lambda tx: find_command(tx, chat, kind, key))

    async def open_turns(self) -> list[str]:
        def work(tx: Transaction) -> list[str]:
            return [row[0] for row in tx.connection.execute("SELECT chat FROM chat_logs WHERE turn IS NOT NULL")]

        return await self._database.read(work)

    async def trim(self, chat: str, before: int) -> int:
        def work(tx: Transaction) -> int:
            state = _state(tx, chat)
            return state.first if state.turn is not None else cut(tx, state.id, state.first, before)

        first = await self._write(work)
        self._hub.forget(chat)
        return first
