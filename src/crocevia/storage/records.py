"""Call records: one row per call, opened before a provider is asked and settled once. Metadata only, never texts.

Unknown is None, never zero. Spend and counters are rebuilt from here, so a crash loses no money.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec
from sqlalchemy import (
    Column,
    ColumnElement,
    Float,
    Index,
    Integer,
    Table,
    Text,
    bindparam,
    case,
    cast,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from crocevia.core.usage import LARGEST_TOKENS, LARGEST_USD, TOKENS, Usage, plausible
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import implausible, packed, setting
from crocevia.storage.statements import Row

# One row per call: durable with settled_at null before a provider is asked, completed at the end.
call_records = Table(
    "call_records",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("started_at", Float, nullable=False, index=True),
    Column("settled_at", Float),
    Column("door", Text, nullable=False),
    Column("encode", Text),
    Column("project", Text),
    Column("user_id", Text),
    Column("agent", Text),
    Column("model", Text),
    Column("engine", Text),
    Column("session_id", Text),
    Column("catalogue_revision", Integer, nullable=False),
    Column("reserved_usd", Float),
    Column("outcome", Text),
    Column("ended_by", Text),
    Column("input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("cache_read_tokens", Integer),
    Column("cache_write_tokens", Integer),
    Column("reasoning_tokens", Integer),
    Column("estimated", Integer, nullable=False, server_default=text("0")),
    Column("cost_usd", Float),
    Column("first_byte_seconds", Float),
    Column("stream_seconds", Float),
    Column("bytes_in", Integer),
    Column("bytes_out", Integer),
    Column("partial", Integer, nullable=False, server_default=text("0")),
    Column("notes", Text),
    Index(None, "project", "started_at"),
    Index("ix_call_records_user", "user_id", "started_at", sqlite_where=text("user_id is not null")),
    Index("ix_call_records_open", "id", sqlite_where=text("settled_at is null")),
)


EndedBy = Literal["model", "client", "gateway", "restart"]

_c: Final = call_records.c


class OpenedCall(msgspec.Struct, frozen=True, kw_only=True):
    """What is known at admission."""

    id: str
    started_at: float
    """Unix seconds."""
    door: str
    catalogue_revision: int
    encode: str | None = None
    project: str | None = None
    user_id: str | None = None
    agent: str | None = None
    model: str | None = None
    engine: str | None = None
    session_id: str | None = None
    reserved_usd: float | None = None
    """What the call may cost at most."""
    bytes_in: int | None = None


class FallbackCall(msgspec.Struct, frozen=True, kw_only=True):
    """An open call that another model is asked for."""

    id: str
    model: str
    engine: str
    reserved_usd: float | None
    """What the call may cost at most, there."""


class SettledCall(msgspec.Struct, frozen=True, kw_only=True):
    """How the call ended. A field fills the column of its name, and those of `usage` theirs."""

    id: str
    settled_at: float
    """Unix seconds."""
    outcome: str
    """`ok`, the `Code` that the call failed with, or `cancelled`."""
    ended_by: EndedBy
    model: str | None = None
    """Which model answered; None keeps what admission said."""
    engine: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    first_byte_seconds: float | None = None
    stream_seconds: float | None = None
    bytes_out: int | None = None
    partial: bool = False
    """The answer was cut."""
    notes: dict[str, Any] | None = None
    """Remarks of ours that JSON can hold; never texts of the conversation."""


_OPEN: Final = insert(call_records).values({name: bindparam(name) for name in OpenedCall.__struct_fields__})

# A settled call fills the columns of its fields' names; `usage` those of its own.
_SETTLED: Final = tuple(
    name for kind in (SettledCall, Usage) for name in kind.__struct_fields__ if name not in ("id", "usage")
)
_KEPT: Final = ("model", "engine")  # None leaves them as admission said


def _new(name: str) -> ColumnElement[Any]:
    return func.coalesce(bindparam(f"new_{name}"), _c[name]) if name in _KEPT else bindparam(name)


_SETTLE: Final = (
    update(call_records)
    .where(_c.id == bindparam("which"), _c.settled_at.is_(None))
    .values({name: _new(name) for name in _SETTLED})
)
_FALL_BACK: Final = (
    update(call_records)
    .where(_c.id == bindparam("which"), _c.settled_at.is_(None))
    .values(setting("model", "engine", "reserved_usd"))
)
_INTERRUPT: Final = (
    update(call_records)
    .where(_c.settled_at.is_(None))
    .values(
        settled_at=bindparam("now"),
        outcome="interrupted",
        ended_by="restart",
        cost_usd=_c.reserved_usd,
        estimated=case((_c.reserved_usd.is_(None), _c.estimated), else_=1),
        partial=1,
    )
)
_SECOND: Final = cast(_c.started_at, Integer)  # truncates
_COUNTS: Final = (
    select(_c.project, _SECOND.label("second"), func.count().label("calls"))
    .where(_c.project.is_not(None), _c.started_at > bindparam("since"))
    .group_by(_c.project, _SECOND)
    .order_by(_SECOND)
)
_WRONG: Final = {name: implausible(_c[name], LARGEST_TOKENS) for name in TOKENS} | {
    name: implausible(_c[name], LARGEST_USD) for name in ("cost_usd", "reserved_usd")
}
_IMPLAUSIBLE: Final = (
    select(_c.id, *(wrong.label(name) for name, wrong in _WRONG.items())).where(or_(*_WRONG.values())).order_by(_c.id)
)
_ONE: Final = select(call_records).where(_c.id == bindparam("call_id"))


def open_calls(tx: Transaction, calls: list[OpenedCall]) -> None:
    """Insert many open rows at once."""
    tx.run_many(_OPEN, [msgspec.structs.asdict(call) for call in calls])


def fall_back(tx: Transaction, calls: list[FallbackCall]) -> None:
    """Note of open rows who is asked instead, and what is reserved for it."""
    rows = map(msgspec.structs.asdict, calls)
    tx.run_many(_FALL_BACK, [{"which": row.pop("id")} | row for row in rows])


def settle_calls(tx: Transaction, calls: list[SettledCall]) -> int:
    """Complete many rows at once; how many were open."""
    return tx.run_many(_SETTLE, [_settled(call) for call in calls])


def settle_interrupted(tx: Transaction, now: float) -> int:
    """At boot: rows that nobody will settle any more cost what was reserved for them. Returns how many."""
    return tx.run(_INTERRUPT, now=now)


def call_counts(tx: Transaction, since: float) -> list[Row]:
    """Rows of (project, second, calls) after `since`, oldest first: what a rolling hour is rebuilt from."""
    return tx.all(_COUNTS, since=since)


def implausible_calls(tx: Transaction) -> list[tuple[str, list[str]]]:
    """Ids of records that hold what no call can have consumed or cost, each with the columns' names."""
    return [(row.id, [name for name in _WRONG if getattr(row, name)]) for row in tx.all(_IMPLAUSIBLE)]


def notes_of(text: Any) -> dict[str, Any]:
    """What a record's column `notes` says; nothing where it cannot be read."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError):
        return {}


def find_call(tx: Transaction, call_id: str) -> Row | None:
    """One record."""
    return tx.first(_ONE, call_id=call_id)


def call_costs(tx: Transaction, call_ids: Iterable[str]) -> dict[str, float | None]:
    """What those that have a record cost, in USD: what was reserved, while nobody has settled them."""
    rows = {call_id: find_call(tx, call_id) for call_id in call_ids}
    return {
        call_id: row.reserved_usd if row.settled_at is None else row.cost_usd
        for call_id, row in rows.items()
        if row is not None
    }


def _settled(call: SettledCall) -> dict[str, Any]:
    fields = msgspec.structs.asdict(call) | msgspec.structs.asdict(call.usage)
    del fields["usage"]
    fields |= {name: plausible(fields[name], LARGEST_TOKENS) for name in TOKENS}
    fields |= {
        "cost_usd": plausible(call.cost_usd, LARGEST_USD),
        "notes": None if call.notes is None else packed(call.notes),
    }
    return {"which": fields.pop("id")} | {
        f"new_{name}" if name in _KEPT else name: value for name, value in fields.items()
    }
