"""One ATP event out of one frame: version first, then the envelope, then the payload.

`Event` is a union with one class per type. `event.type == "agent.text.delta"` or `isinstance(event, TextDeltaEvent)`
narrows it for a type checker. What this SDK does not know is an `UnknownEvent`, whose `type` is "unknown" and whose
`wire_type` is what the server called it.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias, get_args, get_type_hints

import msgspec
from msgspec import Meta

from . import payloads
from .errors import InvalidEventError, InvalidFrameError, UnsupportedVersionError
from .payloads import MOMENT, ONLY_IN_3, ULID, AgentId
from .secrets import redacted

ENVELOPE = frozenset({"v", "id", "seq", "ts", "chat_id", "turn_id", "agent", "type", "data"})
SUPPORTED = frozenset({2, 3})
TYPE = re.compile(r"[a-z][a-z0-9]*(?:\.[a-z][a-z0-9]*)*\Z")
EVENT_ID = re.compile(rf"evt_{ULID}\Z")
CHAT_ID = re.compile(rf"cht_{ULID}\Z")
TURN_ID = re.compile(rf"cmpl_{ULID}\Z")
TIME = re.compile(MOMENT)


class AgentRef(msgspec.Struct, frozen=True, kw_only=True):
    """The running instance that speaks; several may share a name. `parent_id` gives the delegation tree."""

    instance_id: AgentId
    name: str
    role: str
    parent_id: Annotated[str, Meta(pattern=rf"^ag_{ULID}\Z")] | None
    model: str = ""

    def __repr__(self) -> str:
        return redacted(self)


class EventBase(msgspec.Struct, frozen=True, kw_only=True):
    """What all events share. `raw` is the JSON as received, unknown fields included."""

    v: int
    id: str
    seq: int
    ts: str
    chat_id: str
    raw: dict[str, object]

    @property
    def wire_type(self) -> str:
        """The type as the server spells it."""
        return str(self.raw["type"])

    @property
    def time(self) -> datetime:
        """`ts` as a datetime, to the microsecond."""
        return moment(self.ts)

    @property
    def extra(self) -> dict[str, object]:
        """Envelope fields this SDK does not know."""
        return {name: value for name, value in self.raw.items() if name not in ENVELOPE}

    @property
    def epoch(self) -> str | None:
        """The log this event belongs to, where the server says so."""
        value = self.raw.get("epoch")
        return value if isinstance(value, str) else None

    @property
    def is_terminal(self) -> bool:
        """Whether this is the one event that ends its turn."""
        return isinstance(self, TERMINAL)

    @property
    def is_ping(self) -> bool:
        return isinstance(self, PingEvent)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.wire_type} id={self.id} seq={self.seq} turn={self.raw['turn_id']}>"


class TurnEventBase(EventBase, frozen=True, kw_only=True):
    """Of a turn, and of nobody in it."""

    turn_id: str
    agent: None


class AgentEventBase(EventBase, frozen=True, kw_only=True):
    """Of an agent at work in a turn."""

    turn_id: str
    agent: AgentRef


class PingEvent(EventBase, frozen=True, kw_only=True):
    """Keeps the connection alive, and says that what follows is live. Has `seq` 0."""

    turn_id: None
    agent: None
    type: Literal["ping"]
    data: payloads.Ping


class TitleUpdatedEvent(TurnEventBase, frozen=True, kw_only=True):
    type: Literal["chat.title.updated"]
    data: payloads.TitleUpdated


class TurnStartedEvent(TurnEventBase, frozen=True, kw_only=True):
    type: Literal["turn.started"]
    data: payloads.TurnStarted


class TurnCompletedEvent(TurnEventBase, frozen=True, kw_only=True):
    type: Literal["turn.completed"]
    data: payloads.TurnCompleted


class TurnCancelledEvent(TurnEventBase, frozen=True, kw_only=True):
    type: Literal["turn.cancelled"]
    data: payloads.TurnCancelled


class TurnFailedEvent(TurnEventBase, frozen=True, kw_only=True):
    type: Literal["turn.failed"]
    data: payloads.TurnFailed


class TurnSteeredEvent(TurnEventBase, frozen=True, kw_only=True):
    type: Literal["turn.steered"]
    data: payloads.TurnSteered


class AgentStartedEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.started"]
    data: payloads.AgentStarted


class PlanEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.plan"]
    data: payloads.Plan


class TextDeltaEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.text.delta"]
    data: payloads.TextDelta


class TextDoneEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.text.done"]
    data: payloads.TextDone


class TextResetEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.text.reset"]
    data: payloads.TextReset


class ReasoningDeltaEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.reasoning.delta"]
    data: payloads.TextDelta


class ReasoningDoneEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.reasoning.done"]
    data: payloads.TextDone


class DelegatedEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.delegated"]
    data: payloads.Delegated


class ToolStartEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.tool.start"]
    data: payloads.ToolStart


class ToolDeltaEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.tool.delta"]
    data: payloads.ToolDelta


class ToolCompleteEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.tool.complete"]
    data: payloads.ToolComplete


class ToolRequestEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.tool.request"]
    data: payloads.ToolRequest


class ToolResultEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.tool.result"]
    data: payloads.ToolResult


class EscalateEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.escalate"]
    data: payloads.Escalate


class EscalationResultEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.escalation.result"]
    data: payloads.EscalationResult


class ArtifactEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.artifact"]
    data: payloads.Artifact


class CompactingEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.context.compacting"]
    data: payloads.Compacting


class CompactedEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.context.compacted"]
    data: payloads.Compacted


class AgentDoneEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.done"]
    data: payloads.AgentDone


class AgentFailedEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["agent.failed"]
    data: payloads.AgentFailed


class ApprovalRequestEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["approval.request"]
    data: payloads.ApprovalRequest


class ApprovalResponseEvent(TurnEventBase, frozen=True, kw_only=True):
    type: Literal["approval.response"]
    data: payloads.ApprovalResponse


class ApprovalExpireEvent(AgentEventBase, frozen=True, kw_only=True):
    type: Literal["approval.expire"]
    data: payloads.ApprovalExpire


class UnknownEvent(EventBase, frozen=True, kw_only=True):
    """A type this SDK does not know: valid, delivered, its `data` the JSON object as received."""

    turn_id: str | None
    agent: AgentRef | None
    type: Literal["unknown"]
    data: dict[str, object]


TerminalEvent: TypeAlias = TurnCompletedEvent | TurnCancelledEvent | TurnFailedEvent
Event: TypeAlias = (
    PingEvent
    | TitleUpdatedEvent
    | TurnStartedEvent
    | TurnCompletedEvent
    | TurnCancelledEvent
    | TurnFailedEvent
    | TurnSteeredEvent
    | AgentStartedEvent
    | PlanEvent
    | TextDeltaEvent
    | TextDoneEvent
    | TextResetEvent
    | ReasoningDeltaEvent
    | ReasoningDoneEvent
    | DelegatedEvent
    | ToolStartEvent
    | ToolDeltaEvent
    | ToolCompleteEvent
    | ToolRequestEvent
    | ToolResultEvent
    | EscalateEvent
    | EscalationResultEvent
    | ArtifactEvent
    | CompactingEvent
    | CompactedEvent
    | AgentDoneEvent
    | AgentFailedEvent
    | ApprovalRequestEvent
    | ApprovalResponseEvent
    | ApprovalExpireEvent
    | UnknownEvent
)
TERMINAL = get_args(TerminalEvent)


def read_kinds() -> dict[str, tuple[type, type[msgspec.Struct]]]:
    """By wire type: the event's class and its payload's."""
    kinds = {}
    for kind in get_args(Event):
        hints = get_type_hints(kind)
        if kind is not UnknownEvent:
            kinds[get_args(hints["type"])[0]] = (kind, hints["data"])
    return kinds


KINDS = read_kinds()


def parse_event(data: bytes | str, *, versions: frozenset[int] = SUPPORTED) -> Event:
    """The event in the JSON of one frame or journal line, as a stream would deliver it.

    Every violation raises with the original kept in `raw`: InvalidFrameError, UnsupportedVersionError (for an envelope
    version that is not in `versions`), InvalidEventError. An unknown type is an `UnknownEvent`.
    """
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise InvalidFrameError("a frame is not valid UTF-8 JSON", raw=data) from None
    if not isinstance(raw, dict):
        raise InvalidFrameError("a frame is not a JSON object", raw=data)
    version = raw.get("v")
    if type(version) is not int:
        raise InvalidEventError("the envelope has no integer version", raw=raw)
    if version not in versions:
        raise UnsupportedVersionError(f"envelope version {version} is not supported here", raw=raw)
    check_envelope(raw)
    return typed(raw, version)


def typed(raw: dict[str, object], version: int) -> Event:
    """The event of a valid envelope."""
    name = str(raw["type"])
    cls, payload = KINDS.get(name, (UnknownEvent, None))
    try:
        agent = None if raw["agent"] is None else msgspec.convert(raw["agent"], AgentRef)
        data = raw["data"] if payload is None else msgspec.convert(raw["data"], payload)
    except msgspec.ValidationError as problem:
        raise InvalidEventError(f"{name}: {reason(problem)}", raw=raw) from None
    if payload is not None:
        check_union(raw, cls)
        if version == 2:
            check_version_2(raw)
    fields = {field: raw[field] for field in ("v", "id", "seq", "ts", "chat_id", "turn_id")}
    event: Event = cls(agent=agent, data=data, raw=raw, type=name if payload else "unknown", **fields)
    return event


def reason(problem: Exception) -> str:
    """What is wrong and where. The schema's own words: msgspec names types, fields and bounds, not values."""
    return str(problem).split("value '")[0]


def check_envelope(raw: dict[str, object]) -> None:
    """The fields every event has, in the shapes every event gives them."""
    missing = ENVELOPE - raw.keys()
    if missing:
        raise InvalidEventError(f"the envelope lacks {', '.join(sorted(missing))}", raw=raw)
    for name, valid in (
        ("type", matches(TYPE, raw["type"])),
        ("id", matches(EVENT_ID, raw["id"])),
        ("chat_id", matches(CHAT_ID, raw["chat_id"])),
        ("turn_id", raw["turn_id"] is None or matches(TURN_ID, raw["turn_id"])),
        ("ts", matches(TIME, raw["ts"])),
        ("seq", is_number(raw["seq"], 0 if raw["type"] == "ping" else None)),
        ("agent", raw["agent"] is None or isinstance(raw["agent"], dict)),
        ("data", isinstance(raw["data"], dict)),
    ):
        if not valid:
            raise InvalidEventError(f"the envelope's {name} is invalid", raw=raw)


def is_number(value: object, exactly: int | None) -> bool:
    """Whether `value` is a sequence number: that one, or any from 1 on."""
    return isinstance(value, int) and type(value) is int and (value >= 1 if exactly is None else value == exactly)


def matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.match(value) is not None


def check_union(raw: dict[str, object], cls: type) -> None:
    """What a known type says about its envelope: whose it is and which turn it belongs to."""
    kind = raw["type"]
    if cls is PingEvent:
        if raw["turn_id"] is not None or raw["agent"] is not None:
            raise InvalidEventError("a ping belongs to no turn and no agent", raw=raw)
        return
    if raw["turn_id"] is None:
        raise InvalidEventError(f"{kind} must name its turn", raw=raw)
    without = issubclass(cls, TurnEventBase)
    if (raw["agent"] is None) != without:
        raise InvalidEventError(f"{kind} must {'not ' if without else ''}name an agent", raw=raw)


def check_version_2(raw: dict[str, object]) -> None:
    data, newer = raw["data"], ONLY_IN_3.get(str(raw["type"]), frozenset())
    if isinstance(data, dict) and newer & data.keys():
        raise InvalidEventError(f"{raw['type']}: a field of version 3 in a version 2 envelope", raw=raw)


def moment(ts: str) -> datetime:
    """A valid RFC 3339 time, any precision: nanoseconds are cut to what a datetime holds."""
    text = ts.upper().replace("Z", "+00:00")
    head, dot, tail = text.partition(".")
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        text = f"{head}.{tail[: min(digits, 6)]:0<6}{tail[digits:]}"
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # a leap second, or a day its month does not have
        return datetime.min.replace(tzinfo=UTC)
