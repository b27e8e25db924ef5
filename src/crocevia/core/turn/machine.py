"""`Turn`: the fold over a turn's entries. `apply` is its only mutator; everything else reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from crocevia.core.messages import FilePart, Message, UserMessage
from crocevia.core.messages import user as say_as_user
from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import CallState, TurnCall, kind_of
from crocevia.core.turn.files import placeholders
from crocevia.core.turn.ids import derive
from crocevia.core.turn.instance import Instance, Phase
from crocevia.core.turn.plan import Plan, Totals, spent
from crocevia.core.turn.questions import Approval, ApprovalState, Escalation, Steer, failure, question, readable
from crocevia.core.turn.run_request import RunRequest, continued
from crocevia.core.usage import add_usd

Ending = Literal["completed", "cancelled", "failed"]


class Turn:
    """One turn of a chat."""

    def __init__(self, history: Iterable[Message] = (), history_tokens: int = 0) -> None:
        self.history = tuple(history)
        """The context its orchestrator starts with, without the new input."""
        self.history_tokens = history_tokens
        self.id = ""
        self.plan = Plan(agents=())
        self.before = Totals()
        """What the chat had consumed before."""
        self.wire = 3
        """The protocol version under which its message was accepted."""
        self.request: RunRequest | None = None
        self.input = ""
        self.files: tuple[FilePart, ...] = ()
        self.opened_at = 0
        self.latest = 0
        """The moment of its newest entry, ms UTC; none goes before it."""
        self.root_id = ""
        self.instances: dict[str, Instance] = {}
        self.calls: dict[str, TurnCall] = {}
        self.approvals: dict[str, Approval] = {}
        self.escalations: dict[str, Escalation] = {}
        self.steers: dict[str, Steer] = {}
        self.title: str | None = None
        self.title_answer: e.TitleAnswered | None = None
        self.known_cost = 0.0
        self.cause: tuple[Ending, str, str] | None = None
        """Ending, code and message of an end that was ordered: cancel, limit, interruption."""
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
        self.latest = max(self.latest, entry.at)

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
    def cost_limit_reached(self) -> bool:
        """What is known of its cost has reached its limit; what costs nothing reaches none."""
        limit = self.plan.limits.cost_usd
        return limit is not None and self.known_cost > 0 and self.known_cost >= limit

    @property
    def deadline(self) -> int | None:
        """When `advance(turn, None, at)` next has something to do (ms UTC)."""
        if self.frozen:
            return None
        moments = [item.deadline for item in self.approvals.values() if item.answer is ApprovalState.OPEN]
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

    def is_failing(self, instance: Instance | None) -> bool:
        """It or one above it failed: it is about to be closed."""
        while instance is not None:
            if instance.failure is not None:
                return True
            instance = self.instances.get(instance.agent.parent_id or "")
        return False

    def open_calls(self, *states: CallState) -> list[TurnCall]:
        return [call for instance in self.instances.values() for call in instance.calls if call.state in states]

    def steers_for(self, instance: str) -> list[Steer]:
        return [steer for steer in self.steers.values() if steer.outcome is None and steer.target == instance]

    def waiting_call(self, child: Instance) -> TurnCall | None:
        """The call of its parent that waits for it; None: it works in the background."""
        parent = self.instances[child.agent.parent_id or ""]
        return next((c for c in parent.calls if c.state is CallState.DELEGATED and c.child == child.id), None)


# --- how the turn, its agents and their models change with an entry ------------------------------------------------


def _opened(turn: Turn, entry: e.TurnOpened) -> None:
    turn.id, turn.opened_at = entry.turn, entry.at
    turn.plan, turn.before, turn.wire = entry.plan, entry.before, entry.wire
    turn.request = entry.request


def _started(turn: Turn, entry: e.TurnStarted) -> None:
    turn.input = entry.input
    try:
        turn.files = placeholders(entry.attachments)
    except (msgspec.MsgspecError, UnicodeError):
        raise e.Unreadable("a file of a message cannot be read") from None


def _steered(turn: Turn, entry: e.TurnSteered) -> None:
    if entry.steer_id in turn.steers:
        raise e.Unreadable("a steer is accepted twice")
    turn.steers[entry.steer_id] = Steer(entry, turn.root_id)


def _steer_applied(turn: Turn, entry: e.SteerApplied) -> None:
    steer = turn.steers[entry.steer_id]
    steer.resolve("applied")
    turn.instances[entry.instance].note([say_as_user(steer.text)])


def _steer_dropped(turn: Turn, entry: e.SteerDropped) -> None:
    turn.steers[entry.steer_id].resolve("dropped")


def _titled(turn: Turn, entry: e.ChatTitleUpdated) -> None:
    turn.title = entry.title


def _title_answered(turn: Turn, entry: e.TitleAnswered) -> None:
    turn.title_answer = entry
    turn.known_cost = add_usd(turn.known_cost, entry.cost_usd or 0)


def _cancelling(turn: Turn, entry: e.CancelAsked) -> None:
    turn.cause = ("cancelled", "cancelled", entry.reason)


def _failing(turn: Turn, entry: e.TurnFailing) -> None:
    turn.cause = ("failed", entry.code, entry.message)


def _closing(turn: Turn, entry: e.TurnClosing) -> None:
    # What a root that is ready ends with is fixed here: closing it makes it «done», not «ready».
    turn.cause = turn.ending
    turn.closing = True


def _ended(turn: Turn, entry: e.Terminal) -> None:
    if any(not instance.done for instance in turn.instances.values()):
        raise e.Unreadable("a turn ends before its agents")
    turn.terminal = entry


def _asked(turn: Turn) -> tuple[Message, ...]:
    if turn.request is not None:
        return turn.request.said
    said = say_as_user(turn.input)
    return (UserMessage(parts=(*said.parts, *turn.files)) if turn.files else said,)


def _agent_started(turn: Turn, entry: e.AgentStarted) -> None:
    agent = entry.agent
    if not turn.root_id:
        turn.root_id = agent.instance_id
        turn.instances[agent.instance_id] = Instance(agent, turn.plan.agents[0], 0, "foreground", None)
        turn.root.start(entry.at, continued(turn.history, _asked(turn)))
        turn.root.context_tokens = turn.history_tokens
        return
    child = turn.instances[agent.instance_id]
    if child.started is not None:
        raise e.Unreadable("an agent starts twice")
    child.start(entry.at, child.initial_context(child.task))


def _agent_failed(turn: Turn, entry: e.AgentFailed) -> None:
    instance = turn.instances[entry.agent.instance_id]
    instance.failure, instance.failure_reported = (entry.code, entry.message), True


def _agent_done(turn: Turn, entry: e.AgentDone) -> None:
    child = turn.instances[entry.agent.instance_id]
    if child.done or turn.open_children(child):
        raise e.Unreadable("an agent is done twice, or before its children")
    child.close()
    parent = turn.instances.get(child.agent.parent_id or "")
    if parent is None:
        return
    failed = entry.status != "completed"
    text = bytes(failure(*(child.failure or ("cancelled", "stopped")))).decode() if failed else child.last_text
    call = turn.waiting_call(child)
    if call is not None:
        call.resolve(text, failed)
        parent.settle()
    else:
        news = {"agent": child.agent.name, "instance": child.id, "status": entry.status, "result": text}
        parent.note([say_as_user(msgspec.json.encode(news).decode())])


def _text_done(turn: Turn, entry: e.TextDone) -> None:
    turn.instances[entry.agent.instance_id].text_done = True


def _reasoning_done(turn: Turn, entry: e.ReasoningDone) -> None:
    turn.instances[entry.agent.instance_id].reasoning = []


def _spoke(turn: Turn, entry: e.AgentTextDelta | e.AgentReasoningDelta) -> None:
    instance = turn.instances[entry.agent.instance_id]
    instance.streamed = instance.inflight
    if instance.retold is not None and isinstance(entry, e.AgentTextDelta):
        told = instance.retold + len(entry.delta)
        instance.retold = told if told < len(instance.text) else None


def _reset(turn: Turn, entry: e.TextReset) -> None:
    instance = turn.instances[entry.agent.instance_id]
    instance.reset_attempt, instance.retold = None, 0 if instance.texts else None


def _remark(turn: Turn, entry: e.Entry) -> None:
    """For the reader's eyes only."""


def _model_started(turn: Turn, entry: e.ModelStarted) -> None:
    instance = turn.instances[entry.instance]
    if instance.inflight:
        raise e.Unreadable("two model calls of one agent at once")
    instance.begin_call(entry)
    for escalation in turn.escalations.values():
        if escalation.parent == instance.id:
            escalation.delivered = True


def _model_answered(turn: Turn, entry: e.ModelAnswered) -> None:
    instance = turn.instances[entry.instance]
    if not instance.inflight:
        raise e.Unreadable("an answer to a call that nobody made")
    instance.apply_answer(entry)
    turn.known_cost = add_usd(turn.known_cost, entry.cost_usd or 0)
    for escalation in turn.escalations.values():
        escalation.ignored = escalation.ignored or (escalation.parent == instance.id and escalation.delivered)
    for index, tool in enumerate(entry.calls):
        call_id = derive("tc", entry.at, turn.id, instance.id, entry.step, index)
        call = TurnCall(call_id, instance.id, tool, kind_of(turn.plan, instance.card.tools, tool.name), entry.at)
        if index in entry.unreadable:
            call.refusal = ("invalid_arguments", "the arguments were no JSON object, or far too long; nothing was done")
        instance.calls.append(call)
        turn.calls[call_id] = call
    instance.settle()


def _model_failed(turn: Turn, entry: e.ModelFailed) -> None:
    instance = turn.instances[entry.instance]
    if not instance.inflight:
        raise e.Unreadable("the failure of a call that nobody made")
    limits = turn.plan.limits
    instance.apply_failure(entry, limits.attempts, limits.interruptions)
    turn.known_cost = add_usd(turn.known_cost, entry.cost_usd or 0)
    instance.settle()


def _compacting(turn: Turn, entry: e.Compacting) -> None:
    instance = turn.instances[entry.agent.instance_id]
    instance.compacting, instance.compacted_at = True, instance.step


def _context_answered(turn: Turn, entry: e.ContextAnswered) -> None:
    instance = turn.instances[entry.instance]
    instance.apply_context(entry)
    turn.known_cost = add_usd(turn.known_cost, entry.cost_usd or 0)
    instance.settle()


def _compacted(turn: Turn, entry: e.Compacted) -> None:
    turn.instances[entry.agent.instance_id].new_context = None


# --- how tool calls, approvals and escalations change -------------------------------------------------------------


def _moved(turn: Turn, entry: e.ToolDelta | e.ToolStart) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.announced = True


def _tool_refused(turn: Turn, entry: e.ToolRefused) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.refusal = (entry.code, entry.message)


def _tool_complete(turn: Turn, entry: e.ToolComplete) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.resolve(readable(entry.result), entry.is_error)
    instance = turn.instances[call.instance]
    instance.totals += entry.usage
    instance.totals += Totals(tool_calls=0 if call.refusal else max(0, 1 - entry.usage.tool_calls))
    turn.known_cost = add_usd(turn.known_cost, entry.usage.cost_usd or 0)
    instance.settle()


def _tool_request(turn: Turn, entry: e.ToolRequest) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.announced = True
    call.deadline = entry.deadline


def _tool_claimed(turn: Turn, entry: e.ToolClaimed) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.holder = entry.holder


def _tool_result(turn: Turn, entry: e.ToolResult) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.resolve(entry.output, entry.is_error)
    instance = turn.instances[call.instance]
    instance.totals += Totals(tool_calls=1)
    instance.settle()


def _delegated(turn: Turn, entry: e.Delegated) -> None:
    parent, call = turn.instances[entry.agent.instance_id], turn.calls[entry.call_id]
    card = turn.plan.agent(entry.child_name)
    if card is None or entry.child_instance_id in turn.instances:
        raise e.Unreadable("a delegation to nobody, or twice")
    call.move(entry)
    call.child = entry.child_instance_id
    agent = e.Speaker(entry.child_instance_id, card.name, "member", parent.id, card.model)
    child = Instance(agent, card, parent.depth + 1, entry.mode, call.id)
    child.task = entry.task
    turn.instances[child.id] = child
    parent.children.append(child.id)
    if entry.mode == "background":
        call.resolve(msgspec.json.encode({"status": "started", "instance": child.id}).decode())
        parent.settle()


def _escalated(turn: Turn, entry: e.Escalated) -> None:
    call, child = turn.calls[entry.call_id], turn.instances[entry.agent.instance_id]
    call.move(entry)
    parent = turn.instances[child.agent.parent_id or ""]
    turn.escalations[entry.escalation_id] = Escalation(entry, parent.id)
    asked = question(entry.escalation_id, child.agent.name, call)
    waiting = turn.waiting_call(child)
    if waiting is not None:
        waiting.resolve(asked)
        parent.settle()
    else:
        parent.note([say_as_user(asked)])


def _escalation_result(turn: Turn, entry: e.EscalationResult) -> None:
    escalation = turn.escalations[entry.escalation_id]
    if escalation.answer is not ApprovalState.OPEN:
        raise e.Unreadable("an escalation is answered twice")
    escalation.answer = ApprovalState.YES if entry.approve else ApprovalState.NO
    call = turn.calls[escalation.call_id]
    call.move(entry)
    _decide(turn, call, entry.approve, "escalation_denied", entry.reason)
    _hand_back(turn, entry.call_id, escalation)


def _approval_request(turn: Turn, entry: e.ApprovalRequest) -> None:
    turn.approvals[entry.approval_id] = Approval(entry)
    if entry.escalation_id is None:
        turn.calls[entry.call_id].move(entry)
        return
    escalation = turn.escalations[entry.escalation_id]
    escalation.approval_id = entry.approval_id
    _hand_back(turn, entry.asked_by, escalation)


def _approval_settled(turn: Turn, entry: e.ApprovalResponse | e.ApprovalExpired) -> None:
    approval = turn.approvals[entry.approval_id]
    approval.settle(entry)
    if approval.escalation_id is not None:
        return
    call = turn.calls[approval.call_id]
    call.move(entry)
    expired = approval.answer is ApprovalState.EXPIRED
    code = "approval_expired" if expired else "approval_denied"
    _decide(turn, call, approval.answer is ApprovalState.YES, code, approval.reason)


def _decide(turn: Turn, call: TurnCall, approve: bool, code: str, reason: str) -> None:
    call.verdict = approve
    if not approve:
        call.refusal = (code, reason or "not approved")


def _hand_back(turn: Turn, call_id: str | None, escalation: Escalation) -> None:
    """The orchestrator's own call, which settled the question, now waits for the member it belongs to."""
    if call_id is None:
        return
    call, child = turn.calls[call_id], turn.instances[escalation.child]
    if child.mode == "foreground":
        call.state, call.child = CallState.DELEGATED, child.id
    else:
        call.resolve('{"status":"recorded"}')
        turn.instances[call.instance].settle()


_APPLY: dict[type, Callable[[Turn, Any], None]] = {
    e.TurnOpened: _opened,
    e.TurnStarted: _started,
    e.TurnSteered: _steered,
    e.SteerApplied: _steer_applied,
    e.SteerDropped: _steer_dropped,
    e.ChatTitleUpdated: _titled,
    e.TitleAnswered: _title_answered,
    e.CancelAsked: _cancelling,
    e.TurnFailing: _failing,
    e.TurnClosing: _closing,
    e.TurnCompleted: _ended,
    e.TurnCancelled: _ended,
    e.TurnFailed: _ended,
    e.AgentStarted: _agent_started,
    e.AgentFailed: _agent_failed,
    e.AgentDone: _agent_done,
    e.TextDone: _text_done,
    e.ReasoningDone: _reasoning_done,
    e.AgentTextDelta: _spoke,
    e.AgentReasoningDelta: _spoke,
    e.TextReset: _reset,
    e.AgentPlan: _remark,
    e.Artifact: _remark,
    e.ModelStarted: _model_started,
    e.ModelAnswered: _model_answered,
    e.ModelFailed: _model_failed,
    e.Compacting: _compacting,
    e.ContextAnswered: _context_answered,
    e.Compacted: _compacted,
    e.ToolStart: _moved,
    e.ToolDelta: _moved,
    e.ToolRefused: _tool_refused,
    e.ToolComplete: _tool_complete,
    e.ToolRequest: _tool_request,
    e.ToolClaimed: _tool_claimed,
    e.ToolResult: _tool_result,
    e.Delegated: _delegated,
    e.Escalated: _escalated,
    e.EscalationResult: _escalation_result,
    e.ApprovalRequest: _approval_request,
    e.ApprovalResponse: _approval_settled,
    e.ApprovalExpired: _approval_settled,
}
