"""What somebody must allow: approvals (by the user), escalations (by the orchestrator), and steers that wait."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256

import msgspec

from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import Call


class Answer(StrEnum):
    OPEN = "open"
    YES = "yes"
    NO = "no"
    EXPIRED = "expired"


class Approval:
    """Binds to the digest of the arguments that were shown. `asked_by`: the orchestrator's call, if it asked."""

    __slots__ = ("answer", "asked_by", "call_id", "deadline", "digest", "escalation_id", "id", "reason")

    def __init__(self, entry: e.ApprovalRequest) -> None:
        self.id = entry.approval_id
        self.call_id = entry.call_id
        self.escalation_id = entry.escalation_id
        self.asked_by = entry.asked_by
        self.deadline = entry.deadline
        self.digest = entry.digest
        self.answer = Answer.OPEN
        self.reason = ""

    def settle(self, entry: e.ApprovalResponse | e.ApprovalExpired) -> None:
        if self.answer is not Answer.OPEN:
            raise e.Unreadable("an approval is answered twice")
        if isinstance(entry, e.ApprovalExpired):
            self.answer, self.reason = Answer.EXPIRED, "the approval expired"
        else:
            self.answer, self.reason = (Answer.YES if entry.approve else Answer.NO), entry.reason


class Escalation:
    """`seen`: the question is in the orchestrator's context. `passed_over`: it answered its model, not this."""

    __slots__ = ("answer", "approval_id", "call_id", "child", "id", "parent", "passed_over", "seen")

    def __init__(self, entry: e.Escalated, parent: str) -> None:
        self.id = entry.escalation_id
        self.call_id = entry.call_id
        self.child = entry.agent.instance_id
        self.parent = parent
        self.approval_id: str | None = None
        self.answer = Answer.OPEN
        self.seen = False
        self.passed_over = False


class Steer:
    """Accepted; `fate` says what became of it."""

    __slots__ = ("fate", "id", "target", "text")

    def __init__(self, entry: e.TurnSteered, root: str) -> None:
        self.id = entry.steer_id
        self.text = entry.text
        self.target = entry.target or root
        self.fate: str | None = None

    def meet(self, fate: str) -> None:
        if self.fate is not None:
            raise e.Unreadable("a steer is spent twice")
        self.fate = fate


def digest_of(call: Call) -> str:
    """Of the tool and the arguments as the model spelled them."""
    return sha256(call.tool.name.encode() + b"\n" + bytes(call.tool.arguments)).hexdigest()


def question(escalation_id: str, name: str, call: Call) -> str:
    """What the orchestrator's model reads about a member's wish."""
    return msgspec.json.encode(
        {
            "escalation_id": escalation_id,
            "agent": name,
            "wants_to_call": call.tool.name,
            "with": call.tool.arguments,
            "answer_with": "answer_escalation",
        }
    ).decode()


def failure(code: str, message: str) -> msgspec.Raw:
    """The result of a call that did not happen, as its model reads it."""
    return msgspec.Raw(msgspec.json.encode({"code": code, "message": message}))


def readable(result: msgspec.Raw) -> str:
    """A tool's JSON result as text for the model."""
    value = bytes(result)
    return str(msgspec.json.decode(value)) if value[:1] == b'"' else value.decode()
