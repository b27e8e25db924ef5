"""What follows from a turn's state without the outside world: a table of rules, each giving the next entry that is due.

Every rule reads the state and returns one entry or None; `advance` applies it and asks again. None of them waits
and none remembers: a turn that was rebuilt from its journal goes on where the journal stops.
"""

from __future__ import annotations

from collections.abc import Callable

from crocevia.core.agent_rules import rule_of
from crocevia.core.catalogue import ToolRule
from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import CallState, TurnCall
from crocevia.core.turn.closing import close_instance, close_turn
from crocevia.core.turn.delegation import answer_for, delegation_for
from crocevia.core.turn.ids import derive
from crocevia.core.turn.instance import Instance, Phase
from crocevia.core.turn.machine import Turn
from crocevia.core.turn.plan import ANSWER
from crocevia.core.turn.questions import ApprovalState, digest_of, failure
from crocevia.core.turn.titles import derive_title

Rule = Callable[[Turn, int], e.Entry | None]


def next_entry(turn: Turn, at: int) -> e.Entry | None:
    """The next entry that is due at `at` (ms UTC), or None: only the outside world can move this turn."""
    if turn.ended:
        return None
    if turn.closing:
        return close_turn(turn, at)
    for rule in FROZEN if turn.frozen else RULES:
        entry = rule(turn, at)
        if entry is not None:
            return entry
    return None


def publish_title(turn: Turn, at: int) -> e.Entry | None:
    answer = turn.title_answer
    if answer is None or turn.title is not None or not turn.plan.title:
        return None
    return e.ChatTitleUpdated(turn=turn.id, at=at, title=answer.title or derive_title(turn.input))


def stop_at_limits(turn: Turn, at: int) -> e.Entry | None:
    limits = turn.plan.limits
    if limits.wall_ms is not None and at >= turn.opened_at + limits.wall_ms:
        return _limit(turn, at, "wall_time", f"{limits.wall_ms} ms")
    if turn.cost_limit_reached:
        return _limit(turn, at, "cost", f"{limits.cost_usd} USD")
    return None


def _limit(turn: Turn, at: int, name: str, value: str) -> e.Entry:
    return e.TurnFailing(turn=turn.id, at=at, code=f"limit_{name}", message=f"{name} limit {value} reached")


def reset_text(turn: Turn, at: int) -> e.Entry | None:
    """Take back what a lost attempt said, then say again what earlier steps said."""
    for instance in turn.instances.values():
        if turn.is_failing(instance) or instance.done:
            continue
        if instance.reset_attempt is not None:
            return e.TextReset(turn=turn.id, at=at, agent=instance.agent, attempt=instance.attempt)
        if instance.retold is not None:
            piece = instance.text[instance.retold : instance.retold + e.DELTA_CHARACTERS]
            return e.AgentTextDelta(turn=turn.id, at=at, agent=instance.agent, delta=piece)
    return None


def expire(turn: Turn, at: int) -> e.Entry | None:
    for approval in turn.approvals.values():
        if approval.answer is ApprovalState.OPEN and at >= approval.deadline:
            return e.ApprovalExpired(turn=turn.id, at=at, agent=turn.root.agent, approval_id=approval.id)
    for call in turn.open_calls(CallState.REQUESTED):
        if call.deadline is not None and at >= call.deadline:
            agent = turn.instances[call.instance].agent
            words = bytes(failure("tool_timeout", "the client did not answer in time")).decode()
            return e.ToolResult(
                turn=turn.id, at=at, agent=agent, call_id=call.id, output=words, is_error=True, timed_out=True
            )
    return None


def fail_instances(turn: Turn, at: int) -> e.Entry | None:
    """A failed member is closed with all it started; a failed root ends the turn."""
    for instance in turn.instances.values():
        if instance.done:
            continue
        if instance.failure is not None and not instance.failure_reported:
            code, message = instance.failure
            return e.AgentFailed(turn=turn.id, at=at, agent=instance.agent, code=code, message=message)
        if instance.failure is not None and instance.id != turn.root_id:
            return close_instance(turn, instance, "failed", at)
        rounds = instance.card.rounds or turn.plan.limits.rounds
        if instance.due and instance.at_step_boundary and instance.step >= rounds:
            return e.AgentFailed(
                turn=turn.id,
                at=at,
                agent=instance.agent,
                code="limit_rounds",
                message=f"rounds limit {rounds} reached",
            )
    return None


def settle_escalations(turn: Turn, at: int) -> e.Entry | None:
    """The user's word is passed on; a question that the orchestrator passed over is a no."""
    for escalation in turn.escalations.values():
        if escalation.answer is not ApprovalState.OPEN:
            continue
        approval = turn.approvals.get(escalation.approval_id or "")
        if approval is not None and approval.answer is not ApprovalState.OPEN:
            verdict: tuple[bool, str] | None = (approval.answer is ApprovalState.YES, approval.reason)
        elif approval is None and escalation.ignored and not _still_answering(turn, escalation.parent):
            verdict = (False, "the orchestrator did not answer")
        else:
            verdict = None
        if verdict is not None:
            return e.EscalationResult(
                turn=turn.id,
                at=at,
                agent=turn.instances[escalation.parent].agent,
                escalation_id=escalation.id,
                approve=verdict[0],
                reason=verdict[1],
            )
    return None


def _still_answering(turn: Turn, parent: str) -> bool:
    calls = turn.instances[parent].calls
    return any(call.kind == "answer" and call.state in _UNDECIDED for call in calls)


_UNDECIDED = (CallState.PROPOSED, CallState.ESCALATED, CallState.APPROVING)


def move_calls(turn: Turn, at: int) -> e.Entry | None:
    for instance in turn.instances.values():
        for call in instance.calls:
            if call.state in (CallState.PROPOSED, CallState.REFUSED):
                entry = _next_of(turn, instance, call, at)
                if entry is not None:
                    return entry
    return None


def _next_of(turn: Turn, instance: Instance, call: TurnCall, at: int) -> e.Entry | None:
    if call.state is CallState.REFUSED:
        return _tell_refusal(turn, instance, call, at)
    if call.handed_over:
        return None
    refusal = call.refusal or _forbidden(instance, call) or _too_many(turn, call)
    if refusal is not None:
        return e.ToolRefused(turn=turn.id, at=at, call_id=call.id, code=refusal[0], message=refusal[1])
    if _rule(instance, call) == "ask" and call.verdict is None:
        return _ask(turn, instance, call, at)
    return _BEGIN[call.kind](turn, instance, call, at)


def _forbidden(instance: Instance, call: TurnCall) -> tuple[str, str] | None:
    if call.kind == "unknown":
        return ("unknown_tool", f"there is no tool {call.tool.name} here")
    if _rule(instance, call) == "deny":
        return ("tool_denied", f"{call.tool.name} is not allowed")
    return None


def _rule(instance: Instance, call: TurnCall) -> ToolRule:
    # An answer to a member's question does nothing by itself: a rule for all tools does not mean it.
    permissions, name = instance.card.permissions, call.tool.name
    return permissions.get(name, "allow") if name == ANSWER else rule_of(permissions, name)


def _too_many(turn: Turn, call: TurnCall) -> tuple[str, str] | None:
    most = turn.plan.limits.tool_calls
    if most is None or call.kind not in _OWN:
        return None
    begun = sum(one.kind in _OWN and one.state is not CallState.PROPOSED for one in turn.calls.values())
    refused = sum(one.refusal is not None for one in turn.calls.values())
    return (LIMIT_TOOL_CALLS, f"tool calls limit {most} reached") if begun - refused >= most else None


_OWN = ("server", "knowledge")
LIMIT_TOOL_CALLS = "limit_tool_calls"


def _tell_refusal(turn: Turn, instance: Instance, call: TurnCall, at: int) -> e.Entry | None:
    if not call.announced:
        return _start(turn, instance, call, at)
    return e.ToolComplete(
        turn=turn.id,
        at=at,
        agent=instance.agent,
        call_id=call.id,
        result=failure(*(call.refusal or ("refused", ""))),
        is_error=True,
    )


def _ask(turn: Turn, instance: Instance, call: TurnCall, at: int) -> e.Entry:
    """The root asks the user; a member asks the one that leads it."""
    if instance.id != turn.root_id:
        return e.Escalated(
            turn=turn.id,
            at=at,
            agent=instance.agent,
            escalation_id=derive("esc", at, turn.id, call.id),
            call_id=call.id,
            reason=f"{call.tool.name} needs permission",
            tool_name=call.tool.name,
            args=call.tool.arguments,
        )
    return ask_user(turn, call, at, f"{call.tool.name} needs permission", None, None)


def ask_user(
    turn: Turn, call: TurnCall, at: int, reason: str, escalation_id: str | None, asked_by: str | None
) -> e.ApprovalRequest:
    origin = turn.instances[call.instance]
    return e.ApprovalRequest(
        turn=turn.id,
        at=at,
        agent=turn.root.agent,
        approval_id=derive("apr", at, turn.id, call.id),
        call_id=call.id,
        origin_agent_id=origin.id,
        tool_name=call.tool.name,
        args=call.tool.arguments,
        reason=reason,
        deadline=at + origin.card.approval_ms,
        digest=digest_of(call),
        escalation_id=escalation_id,
        asked_by=asked_by,
    )


def _start(turn: Turn, instance: Instance, call: TurnCall, at: int) -> e.Entry | None:
    if call.state is CallState.PROPOSED and free_slots(turn, instance) < 1:
        return None
    return e.ToolStart(
        turn=turn.id,
        at=at,
        agent=instance.agent,
        call_id=call.id,
        tool_name=call.tool.name,
        kind=call.wire_kind,
        args=call.tool.arguments,
    )


def free_slots(turn: Turn, instance: Instance) -> int:
    """How many more of its tools may begin now; further calls queue in their order."""
    slots = instance.card.parallel_tools or turn.plan.limits.parallel_tools
    return slots - sum(call.at_work for call in instance.calls)


def _delegate(turn: Turn, instance: Instance, call: TurnCall, at: int) -> e.Entry:
    return delegation_for(turn, instance, call, at)


def _answer(turn: Turn, instance: Instance, call: TurnCall, at: int) -> e.Entry:
    answer = answer_for(turn, instance, call, at)
    if not isinstance(answer, tuple):
        return answer
    escalation, reason = answer
    return ask_user(turn, turn.calls[escalation.call_id], at, reason, escalation.id, call.id)


def _wait(turn: Turn, instance: Instance, call: TurnCall, at: int) -> e.Entry | None:
    """A client tool: the driver signs it first."""
    return None


_BEGIN: dict[str, Callable[[Turn, Instance, TurnCall, int], e.Entry | None]] = {
    "server": _start,
    "knowledge": _start,
    "client": _wait,
    "delegate": _delegate,
    "answer": _answer,
}


def finish_members(turn: Turn, at: int) -> e.Entry | None:
    for instance in turn.instances.values():
        if instance.id != turn.root_id and turn.phase(instance) is Phase.READY and not turn.steers_for(instance.id):
            return close_instance(turn, instance, "completed", at)
    return None


def deliver_steers(turn: Turn, at: int) -> e.Entry | None:
    for steer in turn.steers.values():
        if steer.outcome is not None:
            continue
        instance = turn.instances.get(steer.target)
        if instance is None or instance.done or turn.is_failing(instance):
            return e.SteerDropped(turn=turn.id, at=at, steer_id=steer.id, reason="agent_not_running")
        if instance.at_step_boundary:
            return e.SteerApplied(turn=turn.id, at=at, steer_id=steer.id, instance=instance.id)
    return None


def compact(turn: Turn, at: int) -> e.Entry | None:
    for instance in turn.instances.values():
        if instance.new_context is not None and not turn.is_failing(instance):
            done = instance.new_context
            return e.Compacted(
                turn=turn.id,
                at=at,
                agent=instance.agent,
                new_context=done.summary,
                context_tokens=done.context_tokens,
            )
        window = instance.card.context_window
        if window is None or not (instance.due and instance.at_step_boundary) or instance.compacted_at == instance.step:
            continue
        threshold = int(window * instance.card.compact_at)
        if instance.context_tokens >= threshold:
            return e.Compacting(
                turn=turn.id,
                at=at,
                agent=instance.agent,
                reason="threshold",
                context_tokens=instance.context_tokens,
                threshold_tokens=threshold,
                window_tokens=window,
                threshold=instance.card.compact_at,
            )
    return None


FROZEN: tuple[Rule, ...] = (publish_title,)
RULES: tuple[Rule, ...] = (
    publish_title,
    stop_at_limits,
    reset_text,
    expire,
    fail_instances,
    settle_escalations,
    move_calls,
    finish_members,
    deliver_steers,
    compact,
)
