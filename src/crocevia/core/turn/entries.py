"""The journal's vocabulary: neutral entries, from which a door encodes its wire events.

Public entries carry the wire's own type as their tag and get a `seq`; private ones (model answers, claims, context,
settlements) have none. Fields beyond the wire's (`deadline`, `call_id` …) are there to rebuild the machine; doors leave
them out. What is stored keeps its spelling: a field renamed here says so in its `rename`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from crocevia.core.calls import GenerationOptions
from crocevia.core.messages import Message, ProviderBlocks, ToolCall
from crocevia.core.turn.plan import Plan, ToolKind, Totals
from crocevia.core.turn.run_request import RunRequest, with_earlier_options
from crocevia.core.usage import Usage

Mode = Literal["foreground", "background"]
Role = Literal["orchestrator", "member"]


class Speaker(Struct, frozen=True, array_like=True):
    """Who speaks. Repeated in each of its entries, so that an event is encoded without looking back."""

    instance_id: str
    name: str
    role: Role
    parent_id: str | None
    model: str


class Signature(Struct, frozen=True):
    """A signature over bytes, and whose it is."""

    kid: str
    sig: str
    """Base64url without padding."""
    alg: str = "EdDSA"


class EntryBase(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    turn: str
    at: int


class AgentEntry(EntryBase, frozen=True, kw_only=True):
    agent: Speaker


class Unpriced(Struct, frozen=True, array_like=True):
    """Who answered a call whose price nobody knew: what a later price must be of."""

    model: str
    engine: str
    upstream: str


# --- public: the turn -------------------------------------------------------------------------------------------


class TurnStarted(EntryBase, frozen=True, kw_only=True, tag="turn.started"):
    input: str
    attachments: tuple[Raw, ...] = ()


class TurnSteered(EntryBase, frozen=True, kw_only=True, tag="turn.steered"):
    """Accepted, not yet in a prompt. `steer_id` names it in what follows; no target: the orchestrator."""

    steer_id: str
    text: str
    target: str | None = None


class SteerApplied(EntryBase, frozen=True, kw_only=True, tag="turn.steer.applied"):
    steer_id: str
    instance: str


class SteerDropped(EntryBase, frozen=True, kw_only=True, tag="turn.steer.dropped"):
    steer_id: str
    reason: str


class _Terminal(EntryBase, frozen=True, kw_only=True):
    usage: Totals
    chat_usage: Totals


class TurnCompleted(_Terminal, frozen=True, kw_only=True, tag="turn.completed"):
    finish_reason: str


class TurnCancelled(_Terminal, frozen=True, kw_only=True, tag="turn.cancelled"):
    reason: str


class TurnFailed(_Terminal, frozen=True, kw_only=True, tag="turn.failed"):
    """`message` is ours, in plain words; a failed limit names the limit and its value."""

    code: str
    message: str


class ChatTitleUpdated(EntryBase, frozen=True, kw_only=True, tag="chat.title.updated"):
    title: str


# --- public: an agent -------------------------------------------------------------------------------------------


class AgentStarted(AgentEntry, frozen=True, kw_only=True, tag="agent.started"):
    pass


class AgentPlan(AgentEntry, frozen=True, kw_only=True, tag="agent.plan"):
    plan: str


class AgentTextDelta(AgentEntry, frozen=True, kw_only=True, tag="agent.text.delta"):
    delta: str


class TextReset(AgentEntry, frozen=True, kw_only=True, tag="agent.text.reset"):
    """Forget this instance's deltas so far; what the lost attempt did not spoil is said again at once."""

    attempt: int


class TextDone(AgentEntry, frozen=True, kw_only=True, tag="agent.text.done"):
    text: str


class AgentReasoningDelta(AgentEntry, frozen=True, kw_only=True, tag="agent.reasoning.delta"):
    delta: str


class ReasoningDone(AgentEntry, frozen=True, kw_only=True, tag="agent.reasoning.done"):
    text: str


class Delegated(AgentEntry, frozen=True, kw_only=True, tag="agent.delegated"):
    """`call_id`: the parent's call that asked for it."""

    call_id: str
    child_instance_id: str
    child_name: str
    mode: Mode
    title: str
    task: str


class ToolStart(AgentEntry, frozen=True, kw_only=True, tag="agent.tool.start"):
    call_id: str
    tool_name: str
    kind: ToolKind
    args: Raw


class ToolDelta(AgentEntry, frozen=True, kw_only=True, tag="agent.tool.delta"):
    call_id: str
    delta: str


class ToolComplete(AgentEntry, frozen=True, kw_only=True, tag="agent.tool.complete"):
    """`result` is any JSON value; the model reads a string as it is and anything else as JSON."""

    call_id: str
    result: Raw
    is_error: bool = False
    usage: Totals = Totals()


class ToolRequest(AgentEntry, frozen=True, kw_only=True, tag="agent.tool.request"):
    call_id: str
    tool_name: str
    args: Raw
    signature: Signature
    deadline: int


class ToolResult(AgentEntry, frozen=True, kw_only=True, tag="agent.tool.result"):
    call_id: str
    output: str
    is_error: bool = False
    timed_out: bool = False


class Escalated(AgentEntry, frozen=True, kw_only=True, tag="agent.escalate"):
    escalation_id: str
    call_id: str
    reason: str
    tool_name: str
    args: Raw


class EscalationResult(AgentEntry, frozen=True, kw_only=True, tag="agent.escalation.result"):
    """`call_id`: the orchestrator's call that decided; None when nobody did, which is a no."""

    escalation_id: str
    approve: bool
    reason: str
    call_id: str | None = None


class Artifact(AgentEntry, frozen=True, kw_only=True, tag="agent.artifact"):
    artifact_id: str
    name: str
    media_type: str
    size: int


class Compacting(AgentEntry, frozen=True, kw_only=True, tag="agent.context.compacting"):
    reason: str
    context_tokens: int
    threshold_tokens: int
    window_tokens: int
    threshold: float


class Compacted(AgentEntry, frozen=True, kw_only=True, tag="agent.context.compacted"):
    new_context: str
    context_tokens: int | None = None


class AgentDone(AgentEntry, frozen=True, kw_only=True, tag="agent.done"):
    status: Literal["completed", "failed", "cancelled"]
    summary: str
    usage: Totals


class AgentFailed(AgentEntry, frozen=True, kw_only=True, tag="agent.failed"):
    code: str
    message: str


class ApprovalRequest(AgentEntry, frozen=True, kw_only=True, tag="approval.request"):
    """`digest`: of the arguments that were shown; an approval is good for these alone. `deadline`: ms UTC."""

    approval_id: str
    call_id: str
    origin_agent_id: str
    tool_name: str
    args: Raw
    reason: str
    deadline: int
    digest: str
    escalation_id: str | None = None
    asked_by: str | None = None


class ApprovalResponse(EntryBase, frozen=True, kw_only=True, tag="approval.response"):
    approval_id: str
    approve: bool
    reason: str = ""


class ApprovalExpired(AgentEntry, frozen=True, kw_only=True, tag="approval.expire"):
    approval_id: str


# --- private: no seq, for the machine alone -----------------------------------------------------------------------


class TurnOpened(EntryBase, frozen=True, kw_only=True, tag="turn.opened", rename={"request": "brief"}):
    """First entry of a turn."""

    plan: Plan
    before: Totals = Totals()
    """The chat's lifetime totals."""
    wire: int = 3
    """The protocol version accepted."""
    request: RunRequest | None = None


class ModelStarted(EntryBase, frozen=True, kw_only=True, tag="model.started"):
    instance: str
    step: int
    attempt: int
    call: str | None = None
    """The id that the call's record has, once there is one. None in journals of earlier versions."""


class ModelAnswered(EntryBase, frozen=True, kw_only=True, tag="model.answered"):
    instance: str
    step: int
    attempt: int
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    unreadable: tuple[int, ...] = ()
    """Places of calls whose arguments were no JSON object, or too long: they do not run, and the model is told."""
    provider_blocks: ProviderBlocks | None = msgspec.field(name="opaque", default=None)
    usage: Usage = Usage()
    cost_usd: float | None = None
    unpriced: Unpriced | None = None
    stop: str = "end"


class ModelFailed(EntryBase, frozen=True, kw_only=True, tag="model.failed"):
    """`interrupted`: lost with its process or stopped by us, which says nothing about the model."""

    instance: str
    step: int
    attempt: int
    code: str
    message: str = ""
    retryable: bool = False
    retry_at: int | None = None
    """When the next attempt may begin, ms UTC, where the failure said so."""
    interrupted: bool = False
    usage: Usage = Usage()
    cost_usd: float | None = None
    unpriced: Unpriced | None = None


class ToolRefused(EntryBase, frozen=True, kw_only=True, tag="tool.refused"):
    """It will not run: not known, not allowed, not approved, or over a limit. The model is told."""

    call_id: str
    code: str
    message: str


class ToolClaimed(EntryBase, frozen=True, kw_only=True, tag="tool.claimed"):
    call_id: str
    holder: str


class TitleAnswered(EntryBase, frozen=True, kw_only=True, tag="title.answered"):
    """`title` None: the call failed or took too long; one is derived from the input."""

    title: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    unpriced: Unpriced | None = None


class ContextAnswered(EntryBase, frozen=True, kw_only=True, tag="context.answered"):
    """The summary that replaces an instance's context. No items: it failed, the old context stays."""

    instance: str
    items: tuple[Message, ...] = ()
    summary: str = ""
    context_tokens: int | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    unpriced: Unpriced | None = None


class ContextReplaced(EntryBase, frozen=True, kw_only=True, tag="context.replaced"):
    """Between turns: the chat's whole context is now this (restore, fork, a trimmed log).

    totals and title: what a trimmed log must not forget; unset, they stay as they are.
    """

    items: tuple[Message, ...]
    totals: Totals | None = None
    title: str | None = None


class CancelAsked(EntryBase, frozen=True, kw_only=True, tag="turn.cancelling"):
    reason: str = "user"


class TurnFailing(EntryBase, frozen=True, kw_only=True, tag="turn.failing"):
    code: str
    message: str


class TurnClosing(EntryBase, frozen=True, kw_only=True, tag="turn.closing"):
    """Whatever was at work has said its last word: close what is open, then the turn."""


Terminal: TypeAlias = TurnCompleted | TurnCancelled | TurnFailed
Public: TypeAlias = (
    TurnStarted
    | TurnSteered
    | SteerApplied
    | SteerDropped
    | TurnCompleted
    | TurnCancelled
    | TurnFailed
    | ChatTitleUpdated
    | AgentStarted
    | AgentPlan
    | AgentTextDelta
    | TextReset
    | TextDone
    | AgentReasoningDelta
    | ReasoningDone
    | Delegated
    | ToolStart
    | ToolDelta
    | ToolComplete
    | ToolRequest
    | ToolResult
    | Escalated
    | EscalationResult
    | Artifact
    | Compacting
    | Compacted
    | AgentDone
    | AgentFailed
    | ApprovalRequest
    | ApprovalResponse
    | ApprovalExpired
)
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
Entry: TypeAlias = Public | Private

Invocation: TypeAlias = ModelAnswered | ModelFailed | TitleAnswered | ContextAnswered
"""What a call of a model consumed."""

INVOCATIONS = (ModelAnswered, ModelFailed, TitleAnswered, ContextAnswered)
TERMINAL = (TurnCompleted, TurnCancelled, TurnFailed)
DELTA_CHARACTERS = 10_000
"""Of one delta."""
DELTAS: frozenset[type] = frozenset({AgentTextDelta, AgentReasoningDelta, ToolDelta})
PUBLIC: frozenset[type] = frozenset(Public.__args__)
PRIVATE: frozenset[type] = frozenset(Private.__args__)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)

encode = _encoder.encode


class Unreadable(Exception):
    """The journal does not say what a journal can say. Nothing is guessed from it."""


def decode(body: bytes) -> Entry:
    """The entry that `encode` wrote. Raises Unreadable."""
    try:
        entry = _decoder.decode(body)
        if type(entry) is TurnOpened and entry.request is not None and entry.request.options == GenerationOptions():
            return msgspec.structs.replace(entry, request=with_earlier_options(entry.request, body))
        return entry
    except (msgspec.DecodeError, RecursionError):
        raise Unreadable("an entry of the journal cannot be decoded") from None


def type_of(entry: Entry | type[Entry]) -> str:
    """Its tag: the wire's event type for public entries."""
    return str(entry.__struct_config__.tag)
