"""What is kept about provider blocks: digests in records of calls, and since when an app leaves them out."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import bindparam, select

from crocevia.storage import meta as values
from crocevia.storage.database import Transaction
from crocevia.storage.meta import meta
from crocevia.storage.records import call_records, notes_of

_MARK: Final = "app_without_blocks:"  # followed by the project's name

_c: Final = call_records.c
_NEWEST: Final = (
    select(_c.notes, _c.started_at).order_by(_c.started_at.desc()).limit(bindparam("most")).subquery("newest")
)
_NOTES: Final = (
    select(_NEWEST.c.notes).where(_NEWEST.c.notes.like('%"proof"%')).order_by(_NEWEST.c.started_at)  # oldest first
)
_MARKS: Final = select(meta.c.key, meta.c.value).where(meta.c.key.startswith(_MARK, autoescape=True))


def noted_digests(tx: Transaction, most: int) -> list[dict[str, Any]]:
    """The notes with digests of blocks among the newest `most` records, oldest first."""
    return [notes_of(row.notes) for row in tx.all(_NOTES, most=most)]


def apps_without_blocks(tx: Transaction) -> dict[str, float]:
    """Projects whose app leaves blocks out, with the Unix second when it was last seen to."""
    return {row.key.removeprefix(_MARK): float(row.value) for row in tx.all(_MARKS)}


def mark_app(tx: Transaction, project: str, at: float | None) -> None:
    """The project's app was seen without blocks at that moment; None: it was seen with them."""
    if at is None:
        values.drop(tx, _MARK + project)
    else:
        values.put(tx, _MARK + project, repr(at))
