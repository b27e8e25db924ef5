"""The payload of every known event type. Closed: a field the schema does not name is a violation, not an extension.

Usage, agents and attachment manifests are open: what they carry beyond the fields below stays in the event's `raw`.
Annotations are real (not postponed) because msgspec reads them.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from .secrets import redacted

ULID = "[0-7][0-9a-hjkmnp-tv-zA-HJKMNP-TV-Z]{25}"
Count = Annotated[int, Meta(ge=0)]
Cost = Annotated[float, Meta(ge=0)] | None
TurnId = Annotated[str, Meta(pattern=rf"^cmpl_{ULID}\Z")]
AgentId = Annotated[str, Meta(pattern=rf"^ag_{ULID}\Z")]
CallId = Annotated[str, Meta(pattern=rf"^tc_{ULID}\Z", max_length=64)]
ToolKind = Literal["server", "client", "knowledge", "code"]
MOMENT = (
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)"
    r"(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)\Z"
)
DateTime = Annotated[str, Meta(pattern=f"^{MOMENT}")]
# One line with something to read in it: the contract's own breaks and blanks.
BREAKS = r"\r\n\x0b\x0c\x85\u2028\u2029"
Title = Annotated[str, Meta(pattern=rf"^[^{BREAKS}]*[^\s\x85\u2028\u2029][^{BREAKS}]*\Z", max_length=255)]


class Payload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prints ids, numbers and how much text there is: payloads hold prompts, arguments and outputs."""

    def __repr__(self) -> str:
        return redacted(self)


class Open(msgspec.Struct, frozen=True, kw_only=True):
    def __repr__(self) -> str:
        return redacted(self)


class Billing(Open, frozen=True, kw_only=True):
    status: Literal["inactive"]


class Amount(Open, frozen=True, kw_only=True):
    """A decimal string: money is never rounded through a float."""

    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}\Z")]
    amount: Annotated[str, Meta(pattern=r"^(0|[1-9][0-9]*)(\.[0-9]+)?\Z")]


class CostState(Open, frozen=True, kw_only=True):
    """What is known of the provider's cost. `totals` is None until every part is priced; unknown is never zero."""

    status: Literal["pending", "complete"]
    basis: Literal["reported", "calculated", "mixed", "none"]
    scope_status: Literal["open", "closed"]
    revision: Count
    as_of: str
    invocation_count: Count
    pending_invocation_count: Count
    totals: list[Amount] | None
    priced_subtotals: list[Amount]

    def __post_init__(self) -> None:
        complete = self.status == "complete"
        settled = self.scope_status == "closed" and self.pending_invocation_count == 0
        if complete != (self.totals is not None) or (complete and not settled):
            raise ValueError("usage_cost totals go with a complete, closed scope and with nothing else")


class Usage(Open, frozen=True, kw_only=True):
    """Tokens, milliseconds, USD. `cost_usd` is None when the provider's cost is unknown."""

    input_tokens: Count
    output_tokens: Count
    cost_usd: Cost
    duration_ms: Count
    sprite_ms: Count = 0
    sprite_ram_gb_ms: Count | msgspec.UnsetType = msgspec.UNSET
    tool_calls: Count | msgspec.UnsetType = msgspec.UNSET
    billing: Billing | msgspec.UnsetType = msgspec.UNSET
    usage_cost: CostState | msgspec.UnsetType = msgspec.UNSET


class Manifest(Open, frozen=True, kw_only=True):
    attachment_id: str
    original_name: str
    revision: Annotated[int, Meta(ge=1)]
    sha256: Annotated[str, Meta(pattern=r"^[a-f0-9]{64}\Z")]
    bytes: Count
    conversion: dict[str, object]


class Ping(Payload, frozen=True, kw_only=True):
    pass


class TitleUpdated(Payload, frozen=True, kw_only=True):
    title: Title


class TurnStarted(Payload, frozen=True, kw_only=True):
    turn_id: TurnId
    input: str
    attachments: list[Manifest] | msgspec.UnsetType = msgspec.UNSET


class Terminal(Payload, frozen=True, kw_only=True):
    """What the three endings share. `chat_usage` and `chat_cost` are informative totals, never a budget."""

    turn_id: TurnId
    usage: Usage
    cost: Cost
    chat_usage: Usage
    chat_cost: Cost
    billing: Billing | msgspec.UnsetType = msgspec.UNSET
    usage_cost: CostState | msgspec.UnsetType = msgspec.UNSET


class TurnCompleted(Terminal, frozen=True, kw_only=True):
    finish_reason: str


class TurnCancelled(Terminal, frozen=True, kw_only=True):
    reason: str


class TurnFailed(Terminal, frozen=True, kw_only=True):
    code: str
    message: str


class TurnSteered(Payload, frozen=True, kw_only=True):
    turn_id: TurnId
    text: str
    target_agent_id: AgentId | msgspec.UnsetType = msgspec.UNSET


class AgentStarted(Payload, frozen=True, kw_only=True):
    name: str
    role: str
    model: str
    parent_id: AgentId | None


class Plan(Payload, frozen=True, kw_only=True):
    plan: str


class TextDelta(Payload, frozen=True, kw_only=True):
    delta: str


class TextDone(Payload, frozen=True, kw_only=True):
    text: str


class TextReset(msgspec.Struct, frozen=True, kw_only=True):
    """Additive: the deltas of this instance so far belong to an attempt that was lost. Open, as all additions are."""

    attempt: int | None = None

    def __repr__(self) -> str:
        return redacted(self)


class Delegated(Payload, frozen=True, kw_only=True):
    child_instance_id: AgentId
    child_name: str
    mode: Literal["foreground", "background"]
    title: str
    task: str


class ToolStart(Payload, frozen=True, kw_only=True):
    call_id: str
    tool_name: str
    kind: ToolKind
    args: dict[str, object]


class ToolDelta(Payload, frozen=True, kw_only=True):
    call_id: str
    delta: str


class ToolComplete(Payload, frozen=True, kw_only=True):
    """`result` keeps its JSON shape: an object is not turned into a string."""

    call_id: str
    result: object
    is_error: bool
    usage: Usage


class Signature(Payload, frozen=True, kw_only=True):
    alg: Literal["EdDSA"]
    kid: str
    sig: str


class ToolRequest(Payload, frozen=True, kw_only=True):
    """Not to be run before its signature is verified."""

    call_id: CallId
    tool_name: str
    kind: Literal["client"]
    args: dict[str, object]
    signature: Signature


class ToolResult(Payload, frozen=True, kw_only=True):
    call_id: CallId
    output: Annotated[str, Meta(max_length=131_072)]
    is_error: bool


class Escalate(Payload, frozen=True, kw_only=True):
    escalation_id: str
    agent_id: str
    reason: str
    tool_name: str
    args: dict[str, object]


class EscalationResult(Payload, frozen=True, kw_only=True):
    escalation_id: str
    approve: bool
    reason: str


class Artifact(Payload, frozen=True, kw_only=True):
    artifact_id: str
    name: str
    media_type: str
    size: Count


class Compacting(Payload, frozen=True, kw_only=True):
    turn_id: TurnId | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET
    context_tokens: Count | msgspec.UnsetType = msgspec.UNSET
    threshold_tokens: Count | msgspec.UnsetType = msgspec.UNSET
    window_tokens: Annotated[int, Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET
    threshold: Annotated[float, Meta(gt=0, le=1)] | msgspec.UnsetType = msgspec.UNSET


class Compacted(Payload, frozen=True, kw_only=True):
    new_context: str
    turn_id: TurnId | msgspec.UnsetType = msgspec.UNSET
    context_tokens: Count | msgspec.UnsetType = msgspec.UNSET


class AgentDone(Payload, frozen=True, kw_only=True):
    status: str
    summary: str
    usage: Usage
    duration_ms: Count


class AgentFailed(Payload, frozen=True, kw_only=True):
    code: str
    message: str


class ApprovalRequest(Payload, frozen=True, kw_only=True):
    """Fail closed at `deadline`: nothing is approved by silence."""

    approval_id: str
    origin_agent_id: str
    tool_name: str
    args: dict[str, object]
    reason: str
    deadline: DateTime


class ApprovalResponse(Payload, frozen=True, kw_only=True):
    approval_id: str
    approve: bool
    reason: str


class ApprovalExpire(Payload, frozen=True, kw_only=True):
    approval_id: str


COSTS_3 = frozenset({"billing", "usage_cost"})
ONLY_IN_3: dict[str, frozenset[str]] = {
    "turn.started": frozenset({"attachments"}),
    "turn.completed": COSTS_3,
    "turn.cancelled": COSTS_3,
    "turn.failed": COSTS_3,
}
"""Fields that a version 2 envelope of this type must not have."""
