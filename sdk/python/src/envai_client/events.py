"""One ATP event out of one frame: version first, then the envelope, then the payload."""

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from .errors import InvalidEventError, InvalidFrameError, UnsupportedVersionError
from .payloads import BY_VERSION, MOMENT, TERMINAL, ULID, WITHOUT_AGENT, AgentId

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


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A valid event. `data` is the typed payload, `raw` the JSON as received, unknown fields included."""

    v: int
    id: str
    seq: int
    ts: str
    chat_id: str
    turn_id: str | None
    agent: AgentRef | None
    type: str
    data: Any
    raw: dict[str, Any]

    @property
    def extra(self) -> dict[str, Any]:
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
        return self.type in TERMINAL

    @property
    def is_ping(self) -> bool:
        return self.type == "ping"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.type} id={self.id} seq={self.seq} turn={self.turn_id}>"


class UnknownEvent(Event, frozen=True, kw_only=True):
    """A type this SDK does not know: valid, delivered, its `data` the JSON object as received."""


def read_event(frame: bytes, supported: frozenset[int] = SUPPORTED) -> Event:
    """The event in the data of one frame. Every violation raises with the original kept in `raw`."""
    try:
        raw = msgspec.json.decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise InvalidFrameError("a frame is not valid UTF-8 JSON", raw=frame) from None
    if not isinstance(raw, dict):
        raise InvalidFrameError("a frame is not a JSON object", raw=frame)
    version = raw.get("v")
    if type(version) is not int:
        raise InvalidEventError("the envelope has no integer version", raw=raw)
    if version not in supported:
        raise UnsupportedVersionError(f"envelope version {version} is not supported here", raw=raw)
    check_envelope(raw)
    kind = BY_VERSION[version].get(raw["type"])
    cls: type[Event] = UnknownEvent if kind is None else Event
    try:
        agent = None if raw["agent"] is None else msgspec.convert(raw["agent"], AgentRef)
        data = raw["data"] if kind is None else msgspec.convert(raw["data"], kind)
    except msgspec.ValidationError as problem:
        raise InvalidEventError(f"{raw['type']}: {reason(problem)}", raw=raw) from None
    if kind is not None:
        check_union(raw)
    fields = {name: raw[name] for name in ("v", "id", "seq", "ts", "chat_id", "turn_id", "type")}
    return cls(agent=agent, data=data, raw=raw, **fields)


def reason(problem: Exception) -> str:
    """What is wrong and where. The schema's own words: msgspec names types, fields and bounds, not values."""
    return str(problem).split("value '")[0]


def check_envelope(raw: dict[str, Any]) -> None:
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
        ("seq", type(raw["seq"]) is int and (raw["seq"] == 0 if raw["type"] == "ping" else raw["seq"] >= 1)),
        ("agent", raw["agent"] is None or isinstance(raw["agent"], dict)),
        ("data", isinstance(raw["data"], dict)),
    ):
        if not valid:
            raise InvalidEventError(f"the envelope's {name} is invalid", raw=raw)


def matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.match(value) is not None


def check_union(raw: dict[str, Any]) -> None:
    """What a known type says about its envelope: whose it is and which turn it belongs to."""
    kind = raw["type"]
    if kind == "ping":
        if raw["turn_id"] is not None or raw["agent"] is not None:
            raise InvalidEventError("a ping belongs to no turn and no agent", raw=raw)
        return
    if raw["turn_id"] is None:
        raise InvalidEventError(f"{kind} must name its turn", raw=raw)
    if (raw["agent"] is None) != (kind in WITHOUT_AGENT):
        raise InvalidEventError(f"{kind} must {'not ' if kind in WITHOUT_AGENT else ''}name an agent", raw=raw)
