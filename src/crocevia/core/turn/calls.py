"""One tool call from the model's wish to its result, as a table of transitions."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from crocevia.core.messages import ToolCall, ToolMessage
from crocevia.core.turn import entries as e
from crocevia.core.turn.plan import ANSWER, DELEGATE, Plan, ToolKind

CallKind = Literal["server", "knowledge", "client", "caller", "delegate", "answer", "unknown"]


class CallState(StrEnum):
    PROPOSED = "proposed"  # the model asked; permission, limits and a free slot decide
    ESCALATED = "escalated"  # the member's question lies with its orchestrator
    APPROVING = "approving"  # the question lies with the user
    REFUSED = "refused"  # it will not run; the model is about to be told
    RUNNING = "running"  # its side effect may have happened
    REQUESTED = "requested"  # published to the client
    DELEGATED = "delegated"  # a child works on it
    DONE = "done"


_P, _D = CallState.PROPOSED, CallState.DONE
TRANSITIONS: dict[tuple[CallState, type[e.Entry]], CallState] = {
    (_P, e.Escalated): CallState.ESCALATED,
    (_P, e.ApprovalRequest): CallState.APPROVING,
    (_P, e.ToolRefused): CallState.REFUSED,
    (_P, e.ToolStart): CallState.RUNNING,
    (_P, e.ToolRequest): CallState.REQUESTED,
    (_P, e.Delegated): CallState.DELEGATED,
    (CallState.ESCALATED, e.EscalationResult): _P,
    (CallState.APPROVING, e.ApprovalResponse): _P,
    (CallState.APPROVING, e.ApprovalExpired): _P,
    (CallState.REFUSED, e.ToolStart): CallState.REFUSED,
    (CallState.REFUSED, e.ToolComplete): _D,
    (CallState.RUNNING, e.ToolDelta): CallState.RUNNING,
    (CallState.RUNNING, e.ToolComplete): _D,
    (CallState.REQUESTED, e.ToolClaimed): CallState.REQUESTED,
    (CallState.REQUESTED, e.ToolResult): _D,
}


class TurnCall:
    """A call of one instance. Its attributes are changed by `Turn.apply` alone."""

    __slots__ = (
        "announced",
        "at",
        "child",
        "content",
        "deadline",
        "holder",
        "id",
        "instance",
        "is_error",
        "kind",
        "refusal",
        "state",
        "tool",
        "verdict",
    )

    def __init__(self, call_id: str, instance: str, tool: ToolCall, kind: CallKind, at: int) -> None:
        self.id = call_id
        self.instance = instance
        self.tool = tool
        self.kind = kind
        self.at = at
        self.state = CallState.PROPOSED
        self.verdict: bool | None = None
        """What an approval or escalation decided; None: not asked, or still open."""
        self.refusal: tuple[str, str] | None = None
        """Code and message of a call that will not run."""
        self.announced = False
        """Readers know of it, so they must be told of its end."""
        self.child: str | None = None
        """The instance it was delegated to."""
        self.deadline: int | None = None
        """Of a client's answer, ms UTC."""
        self.holder: str | None = None
        """The client runner that claimed it."""
        self.content = ""
        """What the model reads, once the call is DONE."""
        self.is_error = False

    @property
    def handed_over(self) -> bool:
        """It waits for whoever started the turn, who sees it when the turn ends."""
        return self.kind == "caller" and self.state is CallState.PROPOSED and self.refusal is None

    @property
    def wire_kind(self) -> ToolKind:
        return self.kind if self.kind in ("server", "knowledge", "client") else "server"

    @property
    def at_work(self) -> bool:
        """It holds one of its instance's slots."""
        return self.state in (CallState.RUNNING, CallState.REQUESTED)

    def move(self, entry: e.Entry) -> None:
        """Raises Unreadable if this cannot happen now."""
        state = TRANSITIONS.get((self.state, type(entry)))
        if state is None:
            raise e.Unreadable(f"{e.type_of(entry)} of a call that is {self.state}")
        self.state = state

    def resolve(self, content: str, is_error: bool = False) -> None:
        self.state, self.content, self.is_error = CallState.DONE, content, is_error

    def message(self) -> ToolMessage:
        return ToolMessage(call_id=self.tool.id, content=self.content, is_error=self.is_error)


def kind_of(plan: Plan, allowed: tuple[str, ...], name: str) -> CallKind:
    """What a name means to an agent that may call `allowed`. The two of the team are always there."""
    if name == DELEGATE:
        return "delegate"
    if name == ANSWER:
        return "answer"
    card = plan.tool(name) if name in allowed else None
    return card.kind if card else "unknown"
