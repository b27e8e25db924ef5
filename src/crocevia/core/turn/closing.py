"""Closing in order: calls and questions of an agent, its children before it, the root before the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import CallState, TurnCall
from crocevia.core.turn.instance import Instance
from crocevia.core.turn.machine import Turn
from crocevia.core.turn.plan import Totals
from crocevia.core.turn.questions import ApprovalState, failure
from crocevia.core.turn.titles import derive_title

Status = Literal["completed", "failed", "cancelled"]
_STOPPED = ("cancelled", "it was stopped; its outcome is unknown")


def close_turn(turn: Turn, at: int) -> e.Entry:
    """The next entry on the way to the terminal, the terminal last."""
    if turn.plan.title and turn.title is None:
        return e.ChatTitleUpdated(turn=turn.id, at=at, title=derive_title(turn.input))
    for steer in turn.steers.values():
        if steer.outcome is None:
            return e.SteerDropped(turn=turn.id, at=at, steer_id=steer.id, reason="turn_ended")
    ending, code, words = turn.cause or ("failed", "internal", "")
    if not turn.root.done:
        return close_instance(turn, turn.root, ending, at)
    usage = turn.usage.lasting(at - turn.opened_at)
    totals = turn.before + usage
    if ending == "completed":
        return e.TurnCompleted(
            turn=turn.id, at=at, usage=usage, chat_usage=totals, finish_reason=_FINISH.get(code, "stop")
        )
    if ending == "cancelled":
        return e.TurnCancelled(turn=turn.id, at=at, usage=usage, chat_usage=totals, reason=words)
    return e.TurnFailed(turn=turn.id, at=at, usage=usage, chat_usage=totals, code=code, message=words)


_FINISH = {"end": "stop", "max_tokens": "length", "incomplete": "length", "refusal": "refusal"}


def close_instance(turn: Turn, instance: Instance, status: Status, at: int) -> e.Entry:
    """The next entry on the way to its `agent.done`, children first."""
    children = turn.open_children(instance)
    if children:
        child = children[-1]
        return close_instance(turn, child, "failed" if child.failure else "cancelled", at)
    for step in _STEPS:
        entry = step(turn, instance, at)
        if entry is not None:
            return entry
    entry = _last_words(turn, instance, at) if status == "completed" else None
    return entry or _done(turn, instance, status, at)


def _start(turn: Turn, instance: Instance, at: int) -> e.Entry | None:
    """A member that never came to work is still announced: it was promised to the readers."""
    return e.AgentStarted(turn=turn.id, at=at, agent=instance.agent) if instance.started is None else None


def _stop_model(turn: Turn, instance: Instance, at: int) -> e.Entry | None:
    cost = 0.0 if instance.card.free else None
    if instance.inflight:
        return e.ModelFailed(
            turn=turn.id,
            at=at,
            instance=instance.id,
            step=instance.step,
            attempt=instance.attempt,
            code="stopped",
            interrupted=True,
            cost_usd=cost,
        )
    if instance.compacting:
        return e.ContextAnswered(turn=turn.id, at=at, instance=instance.id, cost_usd=cost)
    return None


def _stop_questions(turn: Turn, instance: Instance, at: int) -> e.Entry | None:
    mine = {call.id for call in instance.calls}
    for approval in turn.approvals.values():
        if approval.answer is ApprovalState.OPEN and approval.call_id in mine:
            return e.ApprovalExpired(turn=turn.id, at=at, agent=turn.root.agent, approval_id=approval.id)
    for escalation in turn.escalations.values():
        if escalation.answer is ApprovalState.OPEN and escalation.child == instance.id:
            return e.EscalationResult(
                turn=turn.id,
                at=at,
                agent=turn.instances[escalation.parent].agent,
                escalation_id=escalation.id,
                approve=False,
                reason="the turn stopped",
            )
    return None


def _stop_calls(turn: Turn, instance: Instance, at: int) -> e.Entry | None:
    for call in instance.calls:
        stop = _STOP.get(call.state)
        if stop is not None and call.announced:
            return stop(turn, instance, call, at)
    return None


def _stop_tool(turn: Turn, instance: Instance, call: TurnCall, at: int) -> e.Entry:
    result = failure(*(call.refusal or _STOPPED))
    return e.ToolComplete(turn=turn.id, at=at, agent=instance.agent, call_id=call.id, result=result, is_error=True)


def _stop_request(turn: Turn, instance: Instance, call: TurnCall, at: int) -> e.Entry:
    output = bytes(failure(*_STOPPED)).decode()
    return e.ToolResult(turn=turn.id, at=at, agent=instance.agent, call_id=call.id, output=output, is_error=True)


_STOP: dict[CallState, Callable[[Turn, Instance, TurnCall, int], e.Entry]] = {
    CallState.RUNNING: _stop_tool,
    CallState.REFUSED: _stop_tool,
    CallState.REQUESTED: _stop_request,
}


def _tell_failure(turn: Turn, instance: Instance, at: int) -> e.Entry | None:
    if instance.failure is None or instance.failure_reported:
        return None
    code, message = instance.failure
    return e.AgentFailed(turn=turn.id, at=at, agent=instance.agent, code=code, message=message)


_STEPS = (_start, _stop_model, _stop_questions, _stop_calls, _tell_failure)


def _last_words(turn: Turn, instance: Instance, at: int) -> e.Entry | None:
    words = "\n\n".join(instance.reasoning)
    if words and _fits(words):
        return e.ReasoningDone(turn=turn.id, at=at, agent=instance.agent, text=words)
    if not instance.text_done and _fits(instance.text):
        return e.TextDone(turn=turn.id, at=at, agent=instance.agent, text=instance.text)
    return None


LARGEST_TEXT = 2_000_000
"""Bytes of one event's text as JSON: clients give up at frames of 2 MiB. A longer text is what its deltas say."""


def _fits(text: str) -> bool:
    return len(text) * 6 <= LARGEST_TEXT or len(msgspec.json.encode(text)) <= LARGEST_TEXT


def _done(turn: Turn, instance: Instance, status: Status, at: int) -> e.Entry:
    usage: Totals = instance.totals.lasting(at - (instance.started or at))
    words = instance.failure[1] if instance.failure else instance.last_text
    return e.AgentDone(turn=turn.id, at=at, agent=instance.agent, status=status, summary=_summary(words), usage=usage)


def _summary(text: str, limit: int = 280) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
