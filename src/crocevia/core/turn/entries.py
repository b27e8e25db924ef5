"""The journal's vocabulary: neutral entries, from which a door encodes its wire events.

Public entries carry the wire's own type as their tag and get a `seq`; private ones (model answers, claims, context,
settlements) have none. `turn` is the turn's id ("" for what happens between turns), `at` milliseconds UTC. Fields
beyond the wire's (`deadline`, `call_id` …) are there to rebuild the machine; doors leave them out.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import Raw

from crocevia.core.calls import GenerationOptions
from crocevia.core.turn.plan import ToolKind, Totals
from crocevia.core.turn.private import Agent as Agent
from crocevia.core.turn.private import Base, Spoken
from crocevia.core.turn.private import CancelAsked as CancelAsked
from crocevia.core.turn.private import ContextAnswered as ContextAnswered
from crocevia.core.turn.private import ContextReplaced as ContextReplaced
from crocevia.core.turn.private import ModelAnswered as ModelAnswered
from crocevia.core.turn.private import ModelFailed as ModelFailed
from crocevia.core.turn.private import ModelStarted as ModelStarted
from crocevia.core.turn.private import Private as Private
from crocevia.core.turn.private import Signature as Signature
from crocevia.core.turn.private import TitleAnswered as TitleAnswered
from crocevia.core.turn.private import ToolClaimed as ToolClaimed
from crocevia.core.turn.private import ToolRefused as ToolRefused
from crocevia.core.turn.private import TurnClosing as TurnClosing
from crocevia.core.turn.private import TurnFailing as TurnFailing
from crocevia.core.turn.private import TurnOpened as TurnOpened
from crocevia.core.turn.private import Unpriced as Unpriced
from crocevia.core.turn.run_request import with_earlier_options

Mode = Literal["foreground", "background"]


# --- public: the turn -------------------------------------------------------------------------------------------


class TurnStarted(Base, frozen=True, kw_only=True, tag="turn.started"):
    input: str
    attachments: tuple[Raw, ...] = ()


class TurnSteered(Base, frozen=True, kw_only=True, tag="turn.steered"):
    """Accepted, not yet in a prompt. `steer_id` names it in what follows; no target: the orchestrator."""

    steer_id: str
    text: str
    target: str | None = None


class SteerApplied(Base, frozen=True, kw_only=True, tag="turn.steer.applied"):
    steer_id: str
    instance: str


class SteerDropped(Base, frozen=True, kw_only=True, tag="turn.steer.dropped"):
    steer_id: str
    reason: str


class _Terminal(Base, frozen=True, kw_only=True):
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


class ChatTitleUpdated(Base, frozen=True, kw_only=True, tag="chat.title.updated"):
    title: str


# --- public: an agent -------------------------------------------------------------------------------------------


class AgentStarted(Spoken, frozen=True, kw_only=True, tag="agent.started"):
    pass


class AgentPlan(Spoken, frozen=True, kw_only=True, tag="agent.plan"):
    plan: str


class TextDelta(Spoken, frozen=True, kw_only=True, tag="agent.text.delta"):
    delta: str


class TextReset(Spoken, frozen=True, kw_only=True, tag="agent.text.reset"):
    """Forget this instance's deltas so far; what the lost attempt did not spoil is said again at once."""

    attempt: int


class TextDone(Spoken, frozen=True, kw_only=True, tag="agent.text.done"):
    text: str


class ReasoningDelta(Spoken, frozen=True, kw_only=True, tag="agent.reasoning.delta"):
    delta: str


class ReasoningDone(Spoken, frozen=True, kw_only=True, tag="agent.reasoning.done"):
    text: str


class Delegated(Spoken, frozen=True, kw_only=True, tag="agent.delegated"):
    """`call_id`: the parent's call that asked for it."""

    call_id: str
    child_instance_id: str
    child_name: str
    mode: Mode
    title: str
    task: str


class ToolStart(Spoken, frozen=True, kw_only=True, tag="agent.tool.start"):
    call_id: str
    tool_name: str
    kind: ToolKind
    args: Raw


class ToolDelta(Spoken, frozen=True, kw_only=True, tag="agent.tool.delta"):
    call_id: str
    delta: str


class ToolComplete(Spoken, frozen=True, kw_only=True, tag="agent.tool.complete"):
    """`result` is any JSON value; the model reads a string as it is and anything else as JSON."""

    call_id: str
    result: Raw
    is_error: bool = False
    usage: Totals = Totals()


class ToolRequest(Spoken, frozen=True, kw_only=True, tag="agent.tool.request"):
    call_id: str
    tool_name: str
    args: Raw
    signature: Signature
    deadline: int


class ToolResult(Spoken, frozen=True, kw_only=True, tag="agent.tool.result"):
    call_id: str
    output: str
    is_error: bool = False
    timed_out: bool = False


class Escalated(Spoken, frozen=True, kw_only=True, tag="agent.escalate"):
    escalation_id: str
    call_id: str
    reason: str
    tool_name: str
    args: Raw


class EscalationResult(Spoken, frozen=True, kw_only=True, tag="agent.escalation.result"):
    """`call_id`: the orchestrator's call that decided; None when nobody did, which is a no."""

    escalation_id: str
    approve: bool
    reason: str
    call_id: str | None = None


class Artifact(Spoken, frozen=True, kw_only=True, tag="agent.artifact"):
    artifact_id: str
    name: str
    media_type: str
    size: int


class Compacting(Spoken, frozen=True, kw_only=True, tag="agent.context.compacting"):
    reason: str
    context_tokens: int
    threshold_tokens: int
    window_tokens: int
    threshold: float


class Compacted(Spoken, frozen=True, kw_only=True, tag="agent.context.compacted"):
    new_context: str
    context_tokens: int | None = None


class AgentDone(Spoken, frozen=True, kw_only=True, tag="agent.done"):
    status: Literal["completed", "failed", "cancelled"]
    summary: str
    usage: Totals


class AgentFailed(Spoken, frozen=True, kw_only=True, tag="agent.failed"):
    code: str
    message: str


class ApprovalRequest(Spoken, frozen=True, kw_only=True, tag="approval.request"):
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


class ApprovalResponse(Base, frozen=True, kw_only=True, tag="approval.response"):
    approval_id: str
    approve: bool
    reason: str = ""


class ApprovalExpired(Spoken, frozen=True, kw_only=True, tag="approval.expire"):
    approval_id: str


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
    | TextDelta
    | TextReset
    | TextDone
    | ReasoningDelta
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
Entry: TypeAlias = Public | Private

Invocation: TypeAlias = ModelAnswered | ModelFailed | TitleAnswered | ContextAnswered
"""What a call of a model consumed."""

INVOCATIONS = (ModelAnswered, ModelFailed, TitleAnswered, ContextAnswered)
TERMINAL = (TurnCompleted, TurnCancelled, TurnFailed)
DELTAS: frozenset[type] = frozenset({TextDelta, ReasoningDelta, ToolDelta})
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
