"""Forgetting the oldest turns of a chat without losing its context."""

from __future__ import annotations

from crocevia.core.turn.chat import ChatState
from crocevia.core.turn.entries import ContextReplaced, Entry, TurnStarted, decode, encode
from crocevia.storage.database import Transaction


def cut(tx: Transaction, log: int, first: int, before: int) -> int:
    """Remove whole turns that precede seq `before`; the first seq that is kept.

    What the next turn needs of them (context, totals, title) stays as one private entry in their place. The
    newest turn always stays. Raises Unreadable, and then nothing is removed.
    """
    rows = tx.connection.execute(
        "SELECT seq, sub, body FROM journal WHERE log = ? ORDER BY seq, sub", (log,)
    ).fetchall()
    entries: list[tuple[int, int, Entry]] = [(seq, sub, decode(body)) for seq, sub, body in rows]
    starts = [seq for seq, sub, entry in entries if sub == 0 and isinstance(entry, TurnStarted)]
    kept = max((seq for seq in starts if first < seq <= before), default=first)
    if kept == first:
        return first
    chat = ChatState()
    for seq, sub, entry in entries:
        if (seq, sub) <= (kept - 1, 0):
            chat.apply(entry)
    memory = ContextReplaced(turn="", at=0, items=chat.history, totals=chat.totals, title=chat.title)
    tx.connection.execute("DELETE FROM journal WHERE log = ? AND (seq, sub) <= (?, 0)", (log, kept - 1))
    # Before the private entries that precede the first turn that is kept.
    tx.connection.execute(
        "INSERT INTO journal (log, seq, sub, body) VALUES (?, ?, -1, ?)", (log, kept - 1, encode(memory))
    )
    tx.connection.execute("UPDATE chat_logs SET first_seq = ? WHERE id = ?", (kept, log))
    return kept
