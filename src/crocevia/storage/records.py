"""Call records: one row per call, opened at admission and settled once. Metadata only, never texts.

Unknown is None, never zero. Spend and counters are rebuilt from here, so a crash loses no money.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from sqlalchemy import Integer, bindparam, case, cast, func, insert, select, update

from crocevia.core.usage import Usage
from crocevia.storage.database import Transaction
from crocevia.storage.schema import call_records
from crocevia.storage.statements import Row

EndedBy = Literal["model", "client", "gateway", "restart"]

_c: Final = call_records.c


class OpenedCall(msgspec.Struct, frozen=True, kw_only=True):
    """What is known at admission. started_at: Unix seconds. reserved_usd: what the call may cost at most."""

    id: str
    started_at: float
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
    bytes_in: int | None = None


class SettledCall(msgspec.Struct, frozen=True, kw_only=True):
    """How the call ended.

    outcome: `ok`, or the `Code` it failed with, or `cancelled`. model, engine: who really answered (None keeps
    what admission said). partial: the answer was cut. Durations in seconds. notes: JSON-able, ours, no texts.
    """

    id: str
    settled_at: float
    outcome: str
    ended_by: EndedBy
    model: str | None = None
    engine: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    queue_seconds: float | None = None
    first_byte_seconds: float | None = None
    stream_seconds: float | None = None
    bytes_out: int | None = None
    partial: bool = False
    notes: dict[str, Any] | None = None


_OPEN: Final = insert(call_records).values({name: bindparam(name) for name in OpenedCall.__struct_fields__})
_SETTLE: Final = (
    update(call_records)
    .where(_c.id == bindparam("call_id"), _c.settled_at.is_(None))
    .values(
        settled_at=bindparam("settled"),
        outcome=bindparam("how"),
        ended_by=bindparam("who"),
        model=func.coalesce(bindparam("by_model"), _c.model),
        engine=func.coalesce(bindparam("by_engine"), _c.engine),
        input_tokens=bindparam("tokens_in"),
        output_tokens=bindparam("tokens_out"),
        cache_read_tokens=bindparam("tokens_read"),
        cache_write_tokens=bindparam("tokens_written"),
        reasoning_tokens=bindparam("tokens_thought"),
        estimated=bindparam("guessed"),
        cost_usd=bindparam("cost"),
        queue_seconds=bindparam("queued"),
        first_byte_seconds=bindparam("waited"),
        stream_seconds=bindparam("streamed"),
        bytes_out=bindparam("sent"),
        partial=bindparam("cut"),
        notes=bindparam("noted"),
    )
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
_ONE: Final = select(call_records).where(_c.id == bindparam("call_id"))


def open_calls(tx: Transaction, calls: list[OpenedCall]) -> None:
    """Insert many open rows at once."""
    tx.run_many(_OPEN, [msgspec.structs.asdict(call) for call in calls])


def settle_calls(tx: Transaction, calls: list[SettledCall]) -> int:
    """Complete many rows at once; how many were open."""
    return tx.run_many(_SETTLE, [_settled(call) for call in calls])


def settle_interrupted(tx: Transaction, now: float) -> int:
    """At boot: rows that nobody will settle any more cost what was reserved for them. Returns how many."""
    return tx.run(_INTERRUPT, now=now)


def call_counts(tx: Transaction, since: float) -> list[Row]:
    """Rows of (project, second, calls) after `since`, oldest first: what a rolling hour is rebuilt from."""
    return tx.all(_COUNTS, since=since)


def find_call(tx: Transaction, call_id: str) -> Row | None:
    """One record."""
    return tx.first(_ONE, call_id=call_id)


def _settled(call: SettledCall) -> dict[str, Any]:
    usage = call.usage
    return {
        "call_id": call.id,
        "settled": call.settled_at,
        "how": call.outcome,
        "who": call.ended_by,
        "by_model": call.model,
        "by_engine": call.engine,
        "tokens_in": usage.input_tokens,
        "tokens_out": usage.output_tokens,
        "tokens_read": usage.cache_read_tokens,
        "tokens_written": usage.cache_write_tokens,
        "tokens_thought": usage.reasoning_tokens,
        "guessed": int(usage.estimated),
        "cost": call.cost_usd,
        "queued": call.queue_seconds,
        "waited": call.first_byte_seconds,
        "streamed": call.stream_seconds,
        "sent": call.bytes_out,
        "cut": int(call.partial),
        "noted": None if call.notes is None else msgspec.json.encode(call.notes).decode(),
    }
