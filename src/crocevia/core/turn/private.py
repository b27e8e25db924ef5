"""Entries without a `seq`, and what all entries have in common. Read them through `entries`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from crocevia.core.messages import Message, Opaque, ToolCall
from crocevia.core.turn.plan import Plan, Totals
from crocevia.core.turn.run_request import RunRequest
from crocevia.core.usage import Usage

Role = Literal["orchestrator", "member"]


class Agent(Struct, frozen=True, array_like=True):
    """Who speaks. Repeated in each of its entries, so that an event is encoded without looking back."""

    instance_id: str
    name: str
    role: Role
    parent_id: str | None
    model: str


class Signature(Struct, frozen=True):
    kid: str
    sig: str
    alg: str = "EdDSA"


class Base(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    turn: str
    at: int


class Spoken(Base, frozen=True, kw_only=True):
    agent: Agent


class Unpriced(Struct, frozen=True, array_like=True):
    """Who answered a call whose price nobody knew: what a later price must be of."""

    model: str
    engine: str
    upstream: str


class TurnOpened(Base, frozen=True, kw_only=True, tag="turn.opened", rename={"request": "brief"}):
    """First entry of a turn. `before`: the chat's lifetime totals. `wire`: the protocol version accepted."""

    plan: Plan
    before: Totals = Totals()
    wire: int = 3
    request: RunRequest | None = None


class ModelStarted(Base, frozen=True, kw_only=True, tag="model.started"):
    instance: str
    step: int
    attempt: int


class ModelAnswered(Base, frozen=True, kw_only=True, tag="model.answered"):
    instance: str
    step: int
    attempt: int
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    opaque: Opaque | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    unpriced: Unpriced | None = None
    stop: str = "end"


class ModelFailed(Base, frozen=True, kw_only=True, tag="model.failed"):
    """`interrupted`: lost with its process or stopped by us, which says nothing about the model."""

    instance: str
    step: int
    attempt: int
    code: str
    message: str = ""
    retryable: bool = False
    interrupted: bool = False
    usage: Usage = Usage()
    cost_usd: float | None = None
    unpriced: Unpriced | None = None


class ToolRefused(Base, frozen=True, kw_only=True, tag="tool.refused"):
    """It will not run: not known, not allowed, not approved, or over a limit. The model is told."""

    call_id: str
    code: str
    message: str


class ToolClaimed(Base, frozen=True, kw_only=True, tag="tool.claimed"):
    call_id: str
    holder: str


class TitleAnswered(Base, frozen=True, kw_only=True, tag="title.answered"):
    """`title` None: the call failed or took too long; one is derived from the input."""

    title: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    unpriced: Unpriced | None = None


class ContextAnswered(Base, frozen=True, kw_only=True, tag="context.answered"):
    """The summary that replaces an instance's context. No items: it failed, the old context stays."""

    instance: str
    items: tuple[Message, ...] = ()
    summary: str = ""
    context_tokens: int | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    unpriced: Unpriced | None = None


class ContextReplaced(Base, frozen=True, kw_only=True, tag="context.replaced"):
    """Between turns: the chat's whole context is now this (restore, fork, a trimmed log).

    totals and title: what a trimmed log must not forget; unset, they stay as they are.
    """

    items: tuple[Message, ...]
    totals: Totals | None = None
    title: str | None = None


class CancelAsked(Base, frozen=True, kw_only=True, tag="turn.cancelling"):
    reason: str = "user"


class TurnFailing(Base, frozen=True, kw_only=True, tag="turn.failing"):
    code: str
    message: str


class TurnClosing(Base, frozen=True, kw_only=True, tag="turn.closing"):
    """Whatever was at work has said its last word: close what is open, then the turn."""


Private: TypeAlias = (
    TurnOpened
    | ModelStarted
    | ModelAnswered
    | ModelFailed
    | ToolRefused
    | ToolClaimed
    | TitleAnswered
    | ContextAnswered
    | ContextReplaced
    | CancelAsked
    | TurnFailing
    | TurnClosing
)
