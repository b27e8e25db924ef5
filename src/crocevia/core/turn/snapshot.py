"""The metadata of a turn's end, frozen with its terminal event; no text of anybody is in it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from crocevia.core.turn import entries as e
from crocevia.core.turn.ids import event_id
from crocevia.core.turn.plan import Totals


class Snapshot(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`event_id` and `occurred_at` (ms UTC) are those of the terminal event; one of the last four by its kind."""

    event_id: str
    occurred_at: int
    event_type: str
    turn_id: str
    usage: Totals
    chat_usage: Totals
    wire: int
    status: Literal["succeeded", "failed", "canceled"]
    finish_reason: str | None = None
    reason: str | None = None
    code: str | None = None
    message: str | None = None


_STATUS: dict[type, Literal["succeeded", "failed", "canceled"]] = {
    e.TurnCompleted: "succeeded",
    e.TurnFailed: "failed",
    e.TurnCancelled: "canceled",
}


def snapshot_of(terminal: e.Terminal, epoch: str, seq: int, wire: int) -> Snapshot:
    """The snapshot to store in the terminal's own transaction. `wire`: the version the turn was accepted under."""
    return Snapshot(
        event_id=event_id(epoch, seq, terminal.at),
        occurred_at=terminal.at,
        event_type=e.type_of(terminal),
        turn_id=terminal.turn,
        usage=terminal.usage,
        chat_usage=terminal.chat_usage,
        wire=wire,
        status=_STATUS[type(terminal)],
        finish_reason=getattr(terminal, "finish_reason", None),
        reason=getattr(terminal, "reason", None),
        code=getattr(terminal, "code", None),
        message=getattr(terminal, "message", None),
    )
