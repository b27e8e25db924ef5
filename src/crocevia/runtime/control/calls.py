"""Call records as people look at them."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from crocevia.storage import record_queries, records
from crocevia.storage.database import Transaction
from crocevia.storage.record_queries import CallFilter

__all__ = ["CallFilter", "CallPage", "CallRow", "call", "calls"]


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """One call. Times in Unix seconds, durations in seconds, cost in USD; None: unknown.

    outcome None: still running. notes: what the gateway remembered about it.
    """

    id: str
    started_at: float
    settled_at: float | None
    door: str
    encode: str | None
    project: str | None
    user_id: str | None
    agent: str | None
    model: str | None
    engine: str | None
    session_id: str | None
    catalogue_revision: int
    reserved_usd: float | None
    outcome: str | None
    ended_by: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    estimated: bool
    cost_usd: float | None
    queue_seconds: float | None
    first_byte_seconds: float | None
    stream_seconds: float | None
    bytes_in: int | None
    bytes_out: int | None
    partial: bool
    notes: dict[str, Any]


class CallPage(msgspec.Struct, frozen=True, kw_only=True):
    """`older`: where the next page starts, None on the last one."""

    rows: list[CallRow]
    older: str | None


def calls(tx: Transaction, wanted: CallFilter, *, most: int = 50, before: str | None = None) -> CallPage:
    """Records, newest first. before: what `CallPage.older` of another page said."""
    found = record_queries.page(tx, wanted, most + 1, _cursor(before))
    rows = [_row(row) for row in found[:most]]
    return CallPage(rows=rows, older=f"{rows[-1].started_at!r}/{rows[-1].id}" if len(found) > most else None)


def call(tx: Transaction, call_id: str) -> CallRow | None:
    """One record."""
    row = records.find_call(tx, call_id)
    return None if row is None else _row(row)


def _cursor(text: str | None) -> tuple[float, str] | None:
    if not text:
        return None
    at, _, call_id = text.partition("/")
    try:
        moment = float(at)
    except ValueError:
        return None
    return (moment, call_id) if math.isfinite(moment) else None


def _row(row: Any) -> CallRow:
    values = {name: getattr(row, name) for name in CallRow.__struct_fields__}
    notes = msgspec.json.decode(row.notes, type=dict[str, Any]) if row.notes else {}
    return CallRow(**(values | {"estimated": bool(row.estimated), "partial": bool(row.partial), "notes": notes}))
