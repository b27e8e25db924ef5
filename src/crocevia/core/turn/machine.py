"""`Turn`: the fold over a turn's entries. `apply` is its only mutator; everything else reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from crocevia.core.messages import FilePart, Message
from crocevia.core.turn import entries as e
from crocevia.core.turn import fold_agents as agents
from crocevia.core.turn import fold_calls as calls
from crocevia.core.turn.calls import Call, CallState
from crocevia.core.turn.instance import Instance, Phase
from crocevia.core.turn.plan import Plan, Totals, spent
from crocevia.core.turn.questions import Answer, Approval, Escalation, Steer
from crocevia.core.turn.run_request import RunRequest
from crocevia.core.turn.wants import Ending


class Turn:
    """One turn of a chat. `history`: the context its orchestrator starts with, the new input left out, and how many
    tokens it has.

    cause: ending, code and words of an end that was ordered (cancel, limit, interruption).
    """

    def __init__(self, history: Iterable[Message] = (), history_tokens: int = 0) -> None:
        self.history = tuple(history)
        self.history_tokens = history_tokens
        self.id = ""
        self.plan = Plan(agents=())
        self.before = Totals()
        self.wire = 3
        self.request: RunRequest | None = None
        self.input = ""
        self.files: tuple[FilePart, ...] = ()
        self.opened_at = 0
        self.root_id = ""
        self.instances: dict[str, Instance] = {}
        self.calls: dict[str, Call] = {}
        self.approvals: dict[str, Approval] = {}
        self.escalations: dict[str, Escalation] = {}
        self.steers: dict[str, Steer] = {}
        self.title: str | None = None
        self.title_answer: e.TitleAnswered | None = None
        self.known_cost = 0.0
        self.cause: tuple[Ending, str, str] | None = None
        self.closing = False
        self.terminal: e.Terminal | None = None

    def apply(self, entry: e.Entry) -> None:
        """Take in what happened. Raises Unreadable if it cannot follow from what happened before."""
        if self.terminal is not None or (entry.turn != self.id and self.id):
            raise e.Unreadable("an entry outside its turn")
        try:
            _APPLY[type(entry)](self, entry)
        except KeyError:
            raise e.Unreadable(f"{e.type_of(entry)} about something unknown") from None

    # --- reading ---------------------------------------------------------------------------------------------

    @property
    def root(self) -> Instance:
        return self.instances[self.root_id]

    @property
    def ended(self) -> bool:
        return self.terminal is not None

    @property
    def frozen(self) -> bool:
        """It will end, whatever still arrives: nothing new is begun."""
        return self.cause is not None or self.closing or (bool(self.root_id) and self.root.failure is not None)

    @property
    def ending(self) -> tuple[Ending, str, str] | None:
        """How it ends if it is closed now: ending, code, words. None: it goes on."""
        if self.cause is not None or not self.root_id:
            return self.cause
        if self.root.failure is not None:
            return ("failed", *self.root.failure)
        if self.phase(self.root) is Phase.READY and (self.root.hands_over or not self.steers_for(self.root_id)):
            return ("completed", self.root.stop, "")
        return None

    @property
    def usage(self) -> Totals:
        """Of all instances and the title call, each once; the duration is the terminal's affair."""
        total = Totals()
        for instance in self.instances.values():
            total += instance.totals
        if self.title_answer is not None:
            total += spent(self.title_answer.usage, self.title_answer.cost_usd)
        return total

    @property
    def money_is_spent(self) -> bool:
        """What is known of its cost has reached its limit; what costs nothing reaches none."""
        limit = self.plan.limits.cost_usd
        return limit is not None and self.known_cost > 0 and self.known_cost >= limit

    @property
    def deadline(self) -> int | None:
        """When `advance(turn, None, at)` next has something to do (ms UTC)."""
        if self.frozen:
            return None
        moments = [item.deadline for item in self.approvals.values() if item.answer is Answer.OPEN]
        moments += [call.deadline for call in self.open_calls(CallState.REQUESTED) if call.deadline is not None]
        if self.plan.limits.wall_ms is not None:
            moments.append(self.opened_at + self.plan.limits.wall_ms)
        return min(moments, default=None)

    def context(self, instance: str) -> tuple[Message, ...]:
        """What its model reads. Report `model.started` first: that settles what the call will see."""
        return tuple(self.instances[instance].context)

    def phase(self, instance: Instance) -> Phase:
        """Where it stands: the first that holds."""
        if instance.done:
            return Phase.DONE
        if instance.failure is not None:
            return Phase.FAILED
        if instance.started is None:
            return Phase.NEW
        if instance.inflight or instance.compacting:
            return Phase.THINKING
        if instance.open_calls and not instance.hands_over:
            return Phase.ACTING
        if instance.due:
            return Phase.THINKING
        return Phase.WAITING if self.open_children(instance) else Phase.READY

    def open_children(self, instance: Instance) -> list[Instance]:
        return [self.instances[child] for child in instance.children if not self.instances[child].done]

    def doomed(self, instance: Instance | None) -> bool:
        """It or one above it failed: it is about to be closed."""
        while instance is not None:
            if instance.failure is not None:
                return True
            instance = self.instances.get(instance.agent.parent_id or "")
        return False

    def open_calls(self, *states: CallState) -> list[Call]:
        return [call for instance in self.instances.values() for call in instance.calls if call.state in states]

    def steers_for(self, instance: str) -> list[Steer]:
        return [steer for steer in self.steers.values() if steer.fate is None and steer.target == instance]

    def waiting_call(self, child: Instance) -> Call | None:
        """The call of its parent that waits for it; None: it works in the background."""
        parent = self.instances[child.agent.parent_id or ""]
        return next((c for c in parent.calls if c.state is CallState.DELEGATED and c.child == child.id), None)


_APPLY: dict[type, Callable[[Turn, Any], None]] = {
    e.TurnOpened: agents.opened,
    e.TurnStarted: agents.started,
    e.TurnSteered: agents.steered,
    e.SteerApplied: agents.steer_applied,
    e.SteerDropped: agents.steer_dropped,
    e.ChatTitleUpdated: agents.titled,
    e.TitleAnswered: agents.title_answered,
    e.CancelAsked: agents.cancelling,
    e.TurnFailing: agents.failing,
    e.TurnClosing: agents.closing,
    e.TurnCompleted: agents.ended,
    e.TurnCancelled: agents.ended,
    e.TurnFailed: agents.ended,
    e.AgentStarted: agents.agent_started,
    e.AgentFailed: agents.agent_failed,
    e.AgentDone: agents.agent_done,
    e.TextDone: agents.text_done,
    e.ReasoningDone: agents.reasoning_done,
    e.TextDelta: agents.spoke,
    e.ReasoningDelta: agents.spoke,
    e.TextReset: agents.reset,
    e.AgentPlan: agents.remark,
    e.Artifact: agents.remark,
    e.ModelStarted: agents.model_started,
    e.ModelAnswered: agents.model_answered,
    e.ModelFailed: agents.model_failed,
    e.Compacting: agents.compacting,
    e.ContextAnswered: agents.context_answered,
    e.Compacted: agents.compacted,
    e.ToolStart: calls.moved,
    e.ToolDelta: calls.moved,
    e.ToolRefused: calls.tool_refused,
    e.ToolComplete: calls.tool_complete,
    e.ToolRequest: calls.tool_request,
    e.ToolClaimed: calls.tool_claimed,
    e.ToolResult: calls.tool_result,
    e.Delegated: calls.delegated,
    e.Escalated: calls.escalated,
    e.EscalationResult: calls.escalation_result,
    e.ApprovalRequest: calls.approval_request,
    e.ApprovalResponse: calls.approval_settled,
    e.ApprovalExpired: calls.approval_settled,
}
