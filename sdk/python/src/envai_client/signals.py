"""What an observer is told. Counts, ids and durations: never a payload, an argument, an output or a URL."""

from __future__ import annotations

import logging
from typing import TypeAlias

import msgspec

LOGGER = logging.getLogger("envai_client")


class RequestStarted(msgspec.Struct, frozen=True, kw_only=True):
    operation: str
    method: str
    path: str


class RequestEnded(msgspec.Struct, frozen=True, kw_only=True):
    """`status` is None when no answer arrived. `seconds` is wall time."""

    operation: str
    method: str
    path: str
    status: int | None
    seconds: float


class Retrying(msgspec.Struct, frozen=True, kw_only=True):
    operation: str
    attempt: int
    delay: float
    status: int | None


class StreamOpened(msgspec.Struct, frozen=True, kw_only=True):
    chat_id: str
    after: int
    epoch: str | None


class StreamClosed(msgspec.Struct, frozen=True, kw_only=True):
    chat_id: str
    last_seq: int


class Reconnecting(msgspec.Struct, frozen=True, kw_only=True):
    chat_id: str
    last_seq: int
    attempt: int
    delay: float


class StreamRestarted(msgspec.Struct, frozen=True, kw_only=True):
    """The explicit policy `restart` was applied: what follows is a new epoch from its beginning."""

    chat_id: str
    reason: str
    last_seq: int


class EventReceived(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    id: str
    seq: int
    chat_id: str
    turn_id: str | None


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True):
    chat_id: str
    call_id: str
    tool: str


class ToolEnded(msgspec.Struct, frozen=True, kw_only=True):
    """`outcome`: delivered, unconfirmed, cancelled, ambiguous, or the server's refusal code."""

    chat_id: str
    call_id: str
    tool: str
    outcome: str
    seconds: float


Signal: TypeAlias = (
    RequestStarted
    | RequestEnded
    | Retrying
    | StreamOpened
    | StreamClosed
    | Reconnecting
    | StreamRestarted
    | EventReceived
    | ToolStarted
    | ToolEnded
)
QUIET = (EventReceived, RequestStarted)


def write_log(signal: Signal, logger: logging.Logger) -> None:
    """One line per signal: debug for what happens per request or event, info for what is worth a look."""
    level = logging.DEBUG if isinstance(signal, (*QUIET, RequestEnded, StreamOpened, StreamClosed)) else logging.INFO
    if logger.isEnabledFor(level):
        logger.log(level, "%s %s", type(signal).__name__, msgspec.structs.asdict(signal))
