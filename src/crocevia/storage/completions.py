"""Rows of completions: what is known of a turn, without a word that anybody said in it.

Written as effects of the journal's own appends, so that row and events never disagree.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final, Literal

import msgspec
from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    bindparam,
    case,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.sql.elements import ColumnElement

from crocevia.core.costs import UsageCost
from crocevia.core.turn.snapshot import Snapshot
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting, packed, setting
from crocevia.storage.statements import Row

# One per turn, with the turn's id. models_subagents, usage, usage_cost, terminal_snapshot: JSON. cost_usd null:
# unknown.
# A turn ends once: closing changes only a row that is still `running`, and the snapshot is never written again.
# Later prices change usage_cost and cost_usd alone.
completions = Table(
    "completions",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("workspace_id", Text, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("chat_id", Text, ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    Column("team_id", Text, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("model_orchestrator", Text),
    Column("models_subagents", Text, nullable=False, server_default=text("'[]'")),
    Column("status", Text, nullable=False),
    Column("finish_reason", Text),
    Column("started_at", Float, nullable=False),
    Column("finished_at", Float),
    Column("duration_ms", Integer),
    Column("usage", Text, nullable=False, server_default=text("'{}'")),
    Column("cost_usd", Float),
    Column("usage_cost", Text),
    Column("terminal_snapshot", Text),
    Column("content_hash", Text),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    CheckConstraint("status in ('running', 'succeeded', 'failed', 'canceled')", name="status"),
    Index(None, "chat_id", "started_at", "id"),
)


Status = Literal["running", "succeeded", "failed", "canceled"]


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """One turn. Times are Unix seconds, to the millisecond."""

    id: str
    workspace_id: str
    chat_id: str
    team_id: str
    user_id: str
    model_orchestrator: str | None = None
    models_subagents: tuple[str, ...] = ()
    status: Status = "running"
    finish_reason: Literal["stop", "error", "canceled"] | None = None
    started_at: float
    finished_at: float | None = None
    duration_ms: int | None = None
    usage: dict[str, int] = {}
    """Figures that are known."""
    cost_usd: float | None = None
    """None: unknown."""
    usage_cost: UsageCost | None = None
    terminal_snapshot: Snapshot | None = None
    content_hash: str | None = None
    created_at: float
    updated_at: float


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which completions of a chat; None leaves a question out. Bounds are inclusive."""

    status: Status | None = None
    model: str | None = None
    started_from: float | None = None
    started_to: float | None = None


_JSON: Final = {
    "models_subagents": tuple[str, ...],
    "usage": dict[str, int],
    "usage_cost": UsageCost | None,
    "terminal_snapshot": Snapshot | None,
}
_FINISH: Final[dict[str, Literal["stop", "error", "canceled"]]] = {
    "succeeded": "stop",
    "failed": "error",
    "canceled": "canceled",
}


def _unless_none(name: str, test: ColumnElement[bool]) -> ColumnElement[bool]:
    return or_(bindparam(name, type_=Text).is_(None), test)


_WANTED: Final = (
    completions.c.chat_id == bindparam("chat"),
    _unless_none("state", completions.c.status == bindparam("state")),
    _unless_none("model", completions.c.model_orchestrator == bindparam("model")),
    _unless_none("since", completions.c.started_at >= bindparam("since")),
    _unless_none("until", completions.c.started_at <= bindparam("until")),
)
_COUNT: Final = select(func.count()).select_from(completions).where(*_WANTED)
_PAGE: Final = (
    select(completions)
    .where(*_WANTED)
    .order_by(completions.c.started_at.desc(), completions.c.id.desc())
    .limit(bindparam("most"))
    .offset(bindparam("skip"))
)
_FIND: Final = select(completions).where(
    completions.c.id == bindparam("which"), completions.c.chat_id == bindparam("chat")
)
_CHAT_OF: Final = select(completions.c.chat_id).where(completions.c.id == bindparam("which"))
_ADD: Final = inserting(completions, *Completion.__struct_fields__)
_CLOSE: Final = (
    update(completions)
    .where(completions.c.id == bindparam("which"), completions.c.status == "running")
    .values(
        setting(
            *("status", "finish_reason", "finished_at", "duration_ms", "models_subagents", "usage", "cost_usd"),
            *("usage_cost", "terminal_snapshot", "content_hash", "updated_at"),
        )
    )
)

# A row that is no JSON must not fail a statement over all rows.
_usage_cost: Final = case((func.json_valid(completions.c.usage_cost) == 1, completions.c.usage_cost))
_PENDING: Final = (
    select(completions.c.id, completions.c.chat_id, completions.c.usage_cost)
    .where(
        completions.c.status != "running",
        completions.c.cost_usd.is_(None),
        func.json_extract(_usage_cost, "$.status") == "pending",
    )
    .order_by(completions.c.chat_id, completions.c.id)
)
_RECONCILE: Final = (
    update(completions)
    .where(
        completions.c.id == bindparam("which"),
        func.json_extract(_usage_cost, "$.revision") == bindparam("known"),
    )
    .values(setting("usage_cost", "cost_usd", "updated_at"))
)


def add(tx: Transaction, completion: Completion) -> None:
    """A turn has begun."""
    fields = msgspec.structs.asdict(completion)
    fields["started_at"] = _to_the_millisecond(completion.started_at)
    tx.run(_ADD, **fields | {name: _packed(fields[name]) for name in _JSON})


def close(
    tx: Transaction,
    snapshot: Snapshot,
    *,
    usage_cost: UsageCost | None,
    models_subagents: tuple[str, ...] = (),
    content_hash: str | None = None,
) -> bool:
    """The turn of this terminal has ended; False if it had already, and nothing changes then."""
    usage = snapshot.usage
    return (
        tx.run(
            _CLOSE,
            which=snapshot.turn_id,
            status=snapshot.status,
            finish_reason=_FINISH[snapshot.status],
            finished_at=snapshot.occurred_at / 1000,
            updated_at=snapshot.occurred_at / 1000,
            duration_ms=usage.duration_ms,
            models_subagents=packed(models_subagents),
            usage=packed({"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}),
            cost_usd=usage.cost_usd,
            usage_cost=_packed(usage_cost),
            terminal_snapshot=packed(snapshot),
            content_hash=content_hash,
        )
        == 1
    )


class Pending(msgspec.Struct, frozen=True):
    """A turn that has ended, with calls whose cost nobody knew."""

    id: str
    chat_id: str
    cost: UsageCost


def pending(tx: Transaction) -> list[Pending]:
    """All of them, chat by chat."""
    found = [(row, _read(row.usage_cost, UsageCost)) for row in tx.all(_PENDING)]
    return [Pending(row.id, row.chat_id, cost) for row, cost in found if cost is not None]


def reconcile(tx: Transaction, completion_id: str, cost: UsageCost, now: float) -> bool:
    """Later prices for a turn, if it still has the revision before that of `cost`; else nothing changes: False.

    The terminal snapshot stays as it was. cost_usd is known when there is a total and no other currency in it.
    """
    known = cost.totals is not None and {part.currency for part in cost.totals} <= {"USD"}
    usd = float(sum(Decimal(part.amount) for part in cost.totals or ())) if known else None
    which = {"which": completion_id, "known": cost.revision - 1}
    return tx.run(_RECONCILE, **which, usage_cost=packed(cost), cost_usd=usd, updated_at=now) == 1


def find(tx: Transaction, chat_id: str, completion_id: str) -> Completion | None:
    """The chat's completion of this id."""
    row = tx.first(_FIND, which=completion_id, chat=chat_id)
    return None if row is None else _value(row)


def chat_of(tx: Transaction, completion_id: str) -> str | None:
    """Where it was begun."""
    found: str | None = tx.scalar(_CHAT_OF, which=completion_id)
    return found


def count(tx: Transaction, chat_id: str, wanted: Filter) -> int:
    """How many there are."""
    found: int = tx.scalar(_COUNT, chat=chat_id, **_asked(wanted))
    return found


def page(tx: Transaction, chat_id: str, wanted: Filter, skip: int, most: int) -> list[Completion]:
    """A part of them, newest first."""
    return [_value(row) for row in tx.all(_PAGE, chat=chat_id, skip=skip, most=most, **_asked(wanted))]


def _asked(wanted: Filter) -> dict[str, object]:
    return {
        "state": wanted.status,
        "model": wanted.model,
        "since": wanted.started_from,
        "until": wanted.started_to,
    }


def _value(row: Row) -> Completion:
    fields = row._asdict()
    for name, kind in _JSON.items():
        fields[name] = _read(fields[name], kind)
    fields["models_subagents"] = fields["models_subagents"] or ()
    fields["usage"] = fields["usage"] or {}
    fields["cost_usd"] = fields["cost_usd"] if isinstance(fields["cost_usd"], int | float) else None
    return Completion(**fields)


def _read(text: Any, kind: Any) -> Any:
    """The value of a JSON column; None, unknown, where it holds none or something else."""
    try:
        return None if text is None else msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError):
        return None


def _packed(value: object) -> str | None:
    return None if value is None else packed(value)


def _to_the_millisecond(seconds: float) -> float:
    # What is shown must be what a filter with the same text finds.
    return round(seconds, 3)
