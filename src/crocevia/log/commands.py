"""Commands: rows with a unique key. The insert decides what their caller is told."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from crocevia.core.turn.entries import TERMINAL, ApprovalExpired, Entry, ToolResult
from crocevia.log.pending import why_closed
from crocevia.log.values import Appended, Closed, Command, CommandKind, Created, Duplicate, Effect, Outcome, Repeated
from crocevia.storage.database import Transaction

_FIND = "SELECT id, turn, kind, key, payload, at, digest FROM commands WHERE log = ? AND kind = ? AND key = ?"
_READ = (
    "SELECT c.id, c.turn, c.kind, c.key, c.payload, c.at FROM commands c JOIN chat_logs l ON l.id = c.log"
    " WHERE l.chat = ? AND c.id > ? ORDER BY c.id"
)
# Kinds about something that must be pending: what kind of thing. A claim's key is `<call id>:<holder>`.
_ABOUT: dict[CommandKind, str] = {"approval": "approval", "tool_output": "tool", "claim": "tool"}


def put(tx: Transaction, log: int, open_turn: str | None, command: Command) -> Outcome:
    """Write it unless it is too late or was written before. Its `id` is given here."""
    if command.turn is not None and command.turn != open_turn:
        return Closed("turn_closed")
    digest = sha256(command.payload).hexdigest()
    row = tx.connection.execute(_FIND, (log, command.kind, command.key)).fetchone()
    if row is not None:
        return Duplicate(row[6] == digest, Command(*row[:6]))
    about = _ABOUT.get(command.kind)
    if about is not None:
        item = command.key.rpartition(":")[0] if command.kind == "claim" else command.key
        closed = why_closed(tx, log, item, about, command.at)
        if closed is not None:
            return closed
        if command.kind == "claim" and (rival := _claimed(tx, log, item)) is not None:
            return Duplicate(False, rival)
    done = tx.connection.execute(
        "INSERT INTO commands (log, turn, kind, key, digest, payload, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (log, command.turn, command.kind, command.key, digest, command.payload, command.at),
    )
    return Created(done.lastrowid or 0)


def once(chat: str, kind: CommandKind, key: str, payload: bytes, at: int) -> Effect:
    """An effect that uses `key` up together with what it leads to (a message and the turn it opens).

    The append raises Repeated, and writes nothing, if the key was used before: also while a turn is open.
    """

    def effect(tx: Transaction, done: Appended) -> None:
        log = tx.connection.execute("SELECT id FROM chat_logs WHERE chat = ?", (chat,)).fetchone()[0]
        outcome = put(tx, log, None, Command(0, None, kind, key, payload, at))
        if isinstance(outcome, Duplicate):
            raise Repeated(outcome)

    return effect


def _claimed(tx: Transaction, log: int, call_id: str) -> Command | None:
    row = tx.connection.execute(
        "SELECT id, turn, kind, key, payload, at FROM commands WHERE log = ? AND kind = 'claim'"
        " AND key > ? || ':' AND key < ? || ';'",
        (log, call_id, call_id),
    ).fetchone()
    return None if row is None else Command(*row)


def find_command(tx: Transaction, chat: str, kind: CommandKind, key: str) -> Command | None:
    """What used up `key`."""
    row = tx.connection.execute(
        "SELECT id, turn, kind, key, payload, at FROM commands"
        " WHERE log = (SELECT id FROM chat_logs WHERE chat = ?) AND kind = ? AND key = ?",
        (chat, kind, key),
    ).fetchone()
    return None if row is None else Command(*row)


def read_commands(tx: Transaction, chat: str, after: int) -> list[Command]:
    """The chat's commands after that number, oldest first."""
    return [Command(*row) for row in tx.connection.execute(_READ, (chat, after))]


def unread(tx: Transaction, log: int, entry: Entry, after: int) -> bool:
    """Whether `entry` ends something over a command that came after `after`: a turn over a cancel or a steer of it, a
    wait over what was waited for.
    """
    about = _ENDS.get(type(entry))
    if about is None:
        return False
    kinds, key = about(entry)
    row = tx.connection.execute(
        "SELECT 1 FROM commands WHERE log = ?1 AND turn = ?2 AND id > ?3 AND kind IN (?4, ?5)"
        " AND (?6 IS NULL OR key = ?6) LIMIT 1",
        (log, entry.turn, after, kinds[0], kinds[-1], key),
    ).fetchone()
    return row is not None


def _turn_ends(entry: Entry) -> tuple[tuple[CommandKind, ...], str | None]:
    return ("cancel", "steer"), None


_ENDS: dict[type, Callable[[Any], tuple[tuple[CommandKind, ...], str | None]]] = {
    **dict.fromkeys(TERMINAL, _turn_ends),
    ToolResult: lambda entry: (("tool_output",), entry.call_id if entry.timed_out else ""),
    ApprovalExpired: lambda entry: (("approval",), entry.approval_id),
}
