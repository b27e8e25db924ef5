"""From the journal's neutral entries to events on the wire; what differs by version is in the versions' modules."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from crocevia.core import json
from crocevia.core.ids import new_id
from crocevia.core.turn import Totals
from crocevia.core.turn import entries as e
from crocevia.core.turn.ids import event_id

Totalling: TypeAlias = Callable[[str, Totals, Totals], dict[str, Any]]
Data: TypeAlias = Callable[["Encoder", Any], dict[str, Any]]

_FRAME: Final = (
    b'id: %b:%d\ndata: {"v":%d,"id":"%b","seq":%d,"ts":"%b","chat_id":"%b","turn_id":"%b",'
    b'"agent":%b,"type":"%b","data":%b}\n\n'
)

# What a turn can be told to say and this runtime has no occasion for.
NOT_EMITTED: Final = (e.AgentPlan, e.ToolDelta)


class Encoder:
    """One version's way of saying things. totals: turn id, the turn's consumption, the chat's."""

    def __init__(self, version: int, totals: Totalling, *, attachments: bool = False) -> None:
        self.version = version
        self.totals = totals
        self.attachments = attachments

    def frame(self, chat_id: str, epoch: str, seq: int, entry: e.Entry) -> bytes:
        """One `data:` line, whose id is a cursor.

        Spelled out by hand, envelope and all: readers of long chats wait for thousands of these.
        """
        agent = getattr(entry, "agent", None)
        return _FRAME % (
            epoch.encode(),
            seq,
            self.version,
            event_id(epoch, seq, entry.at).encode(),
            seq,
            moment(entry.at).encode(),
            chat_id.encode(),
            entry.turn.encode(),
            b"null" if agent is None else _agent(agent),
            _TYPES[type(entry)],
            json.encode(DATA[type(entry)](self, entry)),
        )

    def ping(self, chat_id: str, at: int) -> bytes:
        """That the stream is alive. It has no place in the order."""
        event = {
            "v": self.version,
            "id": new_id("evt"),
            "seq": 0,
            "ts": moment(at),
            "chat_id": chat_id,
            "turn_id": None,
            "agent": None,
            "type": "ping",
            "data": {},
        }
        return b"data: %b\n\n" % json.encode(event)


def moment(at: int) -> str:
    """Milliseconds UTC as the wire's date-time."""
    seconds, rest = divmod(at, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def usage(spent: Totals) -> dict[str, Any]:
    """All of what the contract requires, and how many tools were called."""
    return {
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost_usd": spent.cost_usd,
        "duration_ms": spent.duration_ms,
        "tool_calls": spent.tool_calls,
    }


@lru_cache(maxsize=256)
def _agent(agent: e.Speaker) -> bytes:
    return json.encode(
        {
            "instance_id": agent.instance_id,
            "name": agent.name,
            "role": agent.role,
            "parent_id": agent.parent_id,
            "model": agent.model,
        }
    )


def _spelled(raw: msgspec.Raw) -> Any:
    """JSON as one line: a model's own spelling may hold line breaks."""
    return msgspec.json.decode(raw)


def _fields(*names: str) -> Data:
    return lambda encoder, entry: {name: getattr(entry, name) for name in names}


def _started(encoder: Encoder, entry: e.TurnStarted) -> dict[str, Any]:
    data: dict[str, Any] = {"turn_id": entry.turn, "input": entry.input}
    if encoder.attachments and entry.attachments:
        data["attachments"] = [_spelled(item) for item in entry.attachments]
    return data


def _steered(encoder: Encoder, entry: e.TurnSteered) -> dict[str, Any]:
    data = {"turn_id": entry.turn, "text": entry.text}
    return data if entry.target is None else data | {"target_agent_id": entry.target}


def _applied(encoder: Encoder, entry: e.SteerApplied) -> dict[str, Any]:
    return {"turn_id": entry.turn, "steer_id": entry.steer_id, "agent_id": entry.instance}


def _dropped(encoder: Encoder, entry: e.SteerDropped) -> dict[str, Any]:
    return {"turn_id": entry.turn, "steer_id": entry.steer_id, "reason": entry.reason}


def _ended(*names: str) -> Data:
    def data(encoder: Encoder, entry: Any) -> dict[str, Any]:
        said = {name: getattr(entry, name) for name in names}
        return encoder.totals(entry.turn, entry.usage, entry.chat_usage) | said

    return data


def _agent_started(encoder: Encoder, entry: e.AgentStarted) -> dict[str, Any]:
    agent = entry.agent
    return {"name": agent.name, "role": agent.role, "model": agent.model, "parent_id": agent.parent_id}


def _tool_start(encoder: Encoder, entry: e.ToolStart) -> dict[str, Any]:
    return {
        "call_id": entry.call_id,
        "tool_name": entry.tool_name,
        "kind": entry.kind,
        "args": _spelled(entry.args),
    }


def _tool_complete(encoder: Encoder, entry: e.ToolComplete) -> dict[str, Any]:
    return {
        "call_id": entry.call_id,
        "result": _spelled(entry.result),
        "is_error": entry.is_error,
        "usage": usage(entry.usage),
    }


def _tool_request(encoder: Encoder, entry: e.ToolRequest) -> dict[str, Any]:
    signature = entry.signature
    return {
        "call_id": entry.call_id,
        "tool_name": entry.tool_name,
        "kind": "client",
        "args": _spelled(entry.args),
        "signature": {"alg": signature.alg, "kid": signature.kid, "sig": signature.sig},
    }


def _escalated(encoder: Encoder, entry: e.Escalated) -> dict[str, Any]:
    return {
        "escalation_id": entry.escalation_id,
        "agent_id": entry.agent.instance_id,
        "reason": entry.reason,
        "tool_name": entry.tool_name,
        "args": _spelled(entry.args),
    }


def _approval_request(encoder: Encoder, entry: e.ApprovalRequest) -> dict[str, Any]:
    return {
        "approval_id": entry.approval_id,
        "origin_agent_id": entry.origin_agent_id,
        "tool_name": entry.tool_name,
        "args": _spelled(entry.args),
        "reason": entry.reason,
        "deadline": moment(entry.deadline),
    }


def _compacting(encoder: Encoder, entry: e.Compacting) -> dict[str, Any]:
    names = ("reason", "context_tokens", "threshold_tokens", "window_tokens", "threshold")
    return {"turn_id": entry.turn} | {name: getattr(entry, name) for name in names}


def _compacted(encoder: Encoder, entry: e.Compacted) -> dict[str, Any]:
    data: dict[str, Any] = {"turn_id": entry.turn, "new_context": entry.new_context}
    return data if entry.context_tokens is None else data | {"context_tokens": entry.context_tokens}


def _done(encoder: Encoder, entry: e.AgentDone) -> dict[str, Any]:
    return {
        "status": entry.status,
        "summary": entry.summary,
        "usage": usage(entry.usage),
        "duration_ms": entry.usage.duration_ms,
    }


DATA: Final[dict[type, Data]] = {
    e.TurnStarted: _started,
    e.TurnSteered: _steered,
    e.SteerApplied: _applied,
    e.SteerDropped: _dropped,
    e.TurnCompleted: _ended("finish_reason"),
    e.TurnCancelled: _ended("reason"),
    e.TurnFailed: _ended("code", "message"),
    e.ChatTitleUpdated: _fields("title"),
    e.AgentStarted: _agent_started,
    e.AgentPlan: _fields("plan"),
    e.AgentTextDelta: _fields("delta"),
    e.TextReset: _fields("attempt"),
    e.TextDone: _fields("text"),
    e.AgentReasoningDelta: _fields("delta"),
    e.ReasoningDone: _fields("text"),
    e.Delegated: _fields("child_instance_id", "child_name", "mode", "title", "task"),
    e.ToolStart: _tool_start,
    e.ToolDelta: _fields("call_id", "delta"),
    e.ToolComplete: _tool_complete,
    e.ToolRequest: _tool_request,
    e.ToolResult: _fields("call_id", "output", "is_error"),
    e.Escalated: _escalated,
    e.EscalationResult: _fields("escalation_id", "approve", "reason"),
    e.Artifact: _fields("artifact_id", "name", "media_type", "size"),
    e.Compacting: _compacting,
    e.Compacted: _compacted,
    e.AgentDone: _done,
    e.AgentFailed: _fields("code", "message"),
    e.ApprovalRequest: _approval_request,
    e.ApprovalResponse: _fields("approval_id", "approve", "reason"),
    e.ApprovalExpired: _fields("approval_id"),
}

EVENT_TYPES: Final = ("ping", *(e.type_of(kind) for kind in DATA if kind not in NOT_EMITTED))
_TYPES: Final = {kind: e.type_of(kind).encode() for kind in DATA}
