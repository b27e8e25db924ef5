"""Call records as people look at them."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from crocevia.core.usage import LARGEST_TOKENS, LARGEST_USD, TOKENS, plausible
from crocevia.storage import record_queries, records
from crocevia.storage.database import Transaction
from crocevia.storage.record_queries import CallFilter

__all__ = ["CallFilter", "CallPage", "CallRow", "call", "calls"]


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """One call. Times in Unix seconds, durations in seconds, cost in USD; None: unknown."""

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
    """None: still running."""
    ended_by: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    estimated: bool
    cost_usd: float | None
    first_byte_seconds: float | None
    stream_seconds: float | None
    bytes_in: int | None
    bytes_out: int | None
    partial: bool
    notes: dict[str, Any]
    """What the gateway remembered about it."""


# What a row holds beside these is shown as unknown, as the sums take it.
_MOST: Final = {
    **dict.fromkeys(TOKENS, LARGEST_TOKENS),
    **dict.fromkeys(("cost_usd", "reserved_usd"), LARGEST_USD),
    **dict.fromkeys(("first_byte_seconds", "stream_seconds"), record_queries.LARGEST_SECONDS),
    **dict.fromkeys(("bytes_in", "bytes_out"), 1 << 53),
}


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
    values |= {name: _known(values[name], most) for name, most in _MOST.items()}
    flags = {"estimated": bool(row.estimated), "partial": bool(row.partial)}
    return CallRow(**(values | flags | {"notes": records.notes_of(row.notes)}))


def _known(value: Any, most: float) -> Any:
    return plausible(value, most) if isinstance(value, int | float) else None
