"""How tool calls, approvals and escalations change with an entry. Only `Turn.apply` calls these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from crocevia.core.messages import user as say_as_user
from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import Call, CallState
from crocevia.core.turn.instance import Instance
from crocevia.core.turn.plan import Totals
from crocevia.core.turn.questions import Answer, Approval, Escalation, question, readable

if TYPE_CHECKING:
    from crocevia.core.turn.machine import Turn


def moved(turn: Turn, entry: e.ToolDelta | e.ToolStart) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.shown = True


def tool_refused(turn: Turn, entry: e.ToolRefused) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.refusal = (entry.code, entry.message)


def tool_complete(turn: Turn, entry: e.ToolComplete) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.resolve(readable(entry.result), entry.is_error)
    instance = turn.instances[call.instance]
    instance.totals += entry.usage
    instance.totals += Totals(tool_calls=0 if call.refusal else max(0, 1 - entry.usage.tool_calls))
    turn.known_cost += entry.usage.cost_usd or 0
    instance.settle()


def tool_request(turn: Turn, entry: e.ToolRequest) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.shown = True
    call.deadline = entry.deadline


def tool_claimed(turn: Turn, entry: e.ToolClaimed) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.holder = entry.holder


def tool_result(turn: Turn, entry: e.ToolResult) -> None:
    call = turn.calls[entry.call_id]
    call.move(entry)
    call.resolve(entry.output, entry.is_error)
    instance = turn.instances[call.instance]
    instance.totals += Totals(tool_calls=1)
    instance.settle()


def delegated(turn: Turn, entry: e.Delegated) -> None:
    parent, call = turn.instances[entry.agent.instance_id], turn.calls[entry.call_id]
    card = turn.plan.agent(entry.child_name)
    if card is None or entry.child_instance_id in turn.instances:
        raise e.Unreadable("a delegation to nobody, or twice")
    call.move(entry)
    call.child = entry.child_instance_id
    agent = e.Agent(entry.child_instance_id, card.name, "member", parent.id, card.model)
    child = Instance(agent, card, parent.depth + 1, entry.mode, call.id)
    child.task = entry.task
    turn.instances[child.id] = child
    parent.children.append(child.id)
    if entry.mode == "background":
        call.resolve(msgspec.json.encode({"status": "started", "instance": child.id}).decode())
        parent.settle()


def escalated(turn: Turn, entry: e.Escalated) -> None:
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
        parent.hear([say_as_user(asked)])


def escalation_result(turn: Turn, entry: e.EscalationResult) -> None:
    escalation = turn.escalations[entry.escalation_id]
    if escalation.answer is not Answer.OPEN:
        raise e.Unreadable("an escalation is answered twice")
    escalation.answer = Answer.YES if entry.approve else Answer.NO
    call = turn.calls[escalation.call_id]
    call.move(entry)
    decide(turn, call, entry.approve, "escalation_denied", entry.reason)
    hand_back(turn, entry.call_id, escalation)


def approval_request(turn: Turn, entry: e.ApprovalRequest) -> None:
    turn.approvals[entry.approval_id] = Approval(entry)
    if entry.escalation_id is None:
        turn.calls[entry.call_id].move(entry)
        return
    escalation = turn.escalations[entry.escalation_id]
    escalation.approval_id = entry.approval_id
    hand_back(turn, entry.asked_by, escalation)


def approval_settled(turn: Turn, entry: e.ApprovalResponse | e.ApprovalExpired) -> None:
    approval = turn.approvals[entry.approval_id]
    approval.settle(entry)
    if approval.escalation_id is not None:
        return
    call = turn.calls[approval.call_id]
    call.move(entry)
    expired = approval.answer is Answer.EXPIRED
    code = "approval_expired" if expired else "approval_denied"
    decide(turn, call, approval.answer is Answer.YES, code, approval.reason)


def decide(turn: Turn, call: Call, approve: bool, code: str, reason: str) -> None:
    call.verdict = approve
    if not approve:
        call.refusal = (code, reason or "not approved")


def hand_back(turn: Turn, call_id: str | None, escalation: Escalation) -> None:
    """The orchestrator's own call, which settled the question, now waits for the member it belongs to."""
    if call_id is None:
        return
    call, child = turn.calls[call_id], turn.instances[escalation.child]
    if child.mode == "foreground":
        call.state, call.child = CallState.DELEGATED, child.id
    else:
        call.resolve('{"status":"recorded"}')
        turn.instances[call.instance].settle()
