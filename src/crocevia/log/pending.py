"""What a turn waits for from outside, as rows: the answer to a late or doubled request is decided by these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from crocevia.core.turn import entries as e
from crocevia.log.values import Closed
from crocevia.storage.database import Transaction

_OPEN = "INSERT INTO pending (log, id, turn, kind, state, deadline, digest) VALUES (?, ?, ?, ?, 'open', ?, ?)"
_SETTLE = "UPDATE pending SET state = ? WHERE log = ? AND id = ?"


def track(tx: Transaction, log: int, entries: Sequence[e.Entry]) -> None:
    """Bring the rows up to what these entries say."""
    for entry in entries:
        step = _TRACK.get(type(entry))
        if step is not None:
            step(tx, log, entry)


def _tool(tx: Transaction, log: int, entry: e.ToolRequest) -> None:
    tx.connection.execute(_OPEN, (log, entry.call_id, entry.turn, "tool", entry.deadline, None))


def _approval(tx: Transaction, log: int, entry: e.ApprovalRequest) -> None:
    tx.connection.execute(_OPEN, (log, entry.approval_id, entry.turn, "approval", entry.deadline, entry.digest))


def _tool_done(tx: Transaction, log: int, entry: e.ToolResult) -> None:
    tx.connection.execute(_SETTLE, ("expired" if entry.timed_out else "resolved", log, entry.call_id))


def _approved(tx: Transaction, log: int, entry: e.ApprovalResponse) -> None:
    tx.connection.execute(_SETTLE, ("resolved", log, entry.approval_id))


def _expired(tx: Transaction, log: int, entry: e.ApprovalExpired) -> None:
    tx.connection.execute(_SETTLE, ("expired", log, entry.approval_id))


def _ended(tx: Transaction, log: int, entry: e.Terminal) -> None:
    tx.connection.execute("DELETE FROM pending WHERE log = ? AND turn = ?", (log, entry.turn))


_TRACK: dict[type, Callable[[Transaction, int, Any], None]] = {
    e.ToolRequest: _tool,
    e.ApprovalRequest: _approval,
    e.ToolResult: _tool_done,
    e.ApprovalResponse: _approved,
    e.ApprovalExpired: _expired,
    **{kind: _ended for kind in e.TERMINAL},
}

TRACKED: frozenset[type] = frozenset(_TRACK)

_REASONS: dict[str, Literal["resolved", "expired"]] = {"resolved": "resolved", "expired": "expired"}


def why_closed(tx: Transaction, log: int, item: str, kind: str, at: int) -> Closed | None:
    """Why `item` (a call's or an approval's id) cannot be answered at `at`; None: it can."""
    row = tx.connection.execute(
        "SELECT state, deadline FROM pending WHERE log = ? AND id = ? AND kind = ?", (log, item, kind)
    ).fetchone()
    if row is None:
        return Closed("unknown")
    state, deadline = row
    if state != "open":
        return Closed(_REASONS[state])
    return Closed("expired") if at >= deadline else None
