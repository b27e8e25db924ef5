"""What somebody must allow: approvals (by the user), escalations (by the orchestrator), and steers that wait."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256

import msgspec

from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import TurnCall


class ApprovalState(StrEnum):
    OPEN = "open"
    YES = "yes"
    NO = "no"
    EXPIRED = "expired"


class Approval:
    """A question to the user, bound to the digest of the arguments that they were shown."""

    __slots__ = ("answer", "asked_by", "call_id", "deadline", "digest", "escalation_id", "id", "reason")

    def __init__(self, entry: e.ApprovalRequest) -> None:
        self.id = entry.approval_id
        self.call_id = entry.call_id
        self.escalation_id = entry.escalation_id
        self.asked_by = entry.asked_by
        """The orchestrator's call, if it passed a member's question on."""
        self.deadline = entry.deadline
        self.digest = entry.digest
        self.answer = ApprovalState.OPEN
        self.reason = ""

    def settle(self, entry: e.ApprovalResponse | e.ApprovalExpired) -> None:
        if self.answer is not ApprovalState.OPEN:
            raise e.Unreadable("an approval is answered twice")
        if isinstance(entry, e.ApprovalExpired):
            self.answer, self.reason = ApprovalState.EXPIRED, "the approval expired"
        else:
            self.answer, self.reason = (ApprovalState.YES if entry.approve else ApprovalState.NO), entry.reason


class Escalation:
    """A member's question to its orchestrator."""

    __slots__ = ("answer", "approval_id", "call_id", "child", "delivered", "id", "ignored", "parent")

    def __init__(self, entry: e.Escalated, parent: str) -> None:
        self.id = entry.escalation_id
        self.call_id = entry.call_id
        self.child = entry.agent.instance_id
        self.parent = parent
        self.approval_id: str | None = None
        self.answer = ApprovalState.OPEN
        self.delivered = False
        """The question is in the orchestrator's context."""
        self.ignored = False
        """The orchestrator's model was called with it, and did not answer it."""


class Steer:
    """A message to an agent at work, accepted and on its way into a prompt."""

    __slots__ = ("id", "outcome", "target", "text")

    def __init__(self, entry: e.TurnSteered, root: str) -> None:
        self.id = entry.steer_id
        self.text = entry.text
        self.target = entry.target or root
        self.outcome: str | None = None
        """`applied` or `dropped`; None: it waits."""

    def resolve(self, outcome: str) -> None:
        if self.outcome is not None:
            raise e.Unreadable("a steer is spent twice")
        self.outcome = outcome


def digest_of(call: TurnCall) -> str:
    """Of the tool and the arguments as the model spelled them."""
    return sha256(call.tool.name.encode() + b"\n" + bytes(call.tool.arguments)).hexdigest()


def question(escalation_id: str, name: str, call: TurnCall) -> str:
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
