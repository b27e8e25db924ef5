"""The two tools of a team: `delegate_task` starts a member, `answer_escalation` answers one that asks."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from crocevia.core.messages import Tool
from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import TurnCall
from crocevia.core.turn.ids import derive
from crocevia.core.turn.instance import Instance
from crocevia.core.turn.machine import Turn
from crocevia.core.turn.plan import ANSWER, DELEGATE, Plan
from crocevia.core.turn.questions import ApprovalState, Escalation


class _Delegation(Struct, frozen=True):
    agent: str
    task: str
    title: str = ""
    mode: Literal["foreground", "background"] = "foreground"


class _Decision(Struct, frozen=True):
    escalation_id: str
    decision: Literal["approve", "deny", "ask_user"]
    reason: str = ""


def team_tools(plan: Plan) -> tuple[Tool, ...]:
    """What the model of a leader is told about its team; nothing if it has no members.

    Questions are answered where members have any: a small model uses whatever tool it sees.
    """
    members = plan.agents[1:]
    if not members:
        return ()
    asks = any("ask" in card.permissions.values() for card in members)
    return (_delegate_tool([card.name for card in members]), *((_ANSWER_TOOL,) if asks else ()))


def _delegate_tool(names: list[str]) -> Tool:
    schema = {
        "type": "object",
        "properties": {
            "agent": {"type": "string", "enum": names},
            "title": {"type": "string", "description": "A few words for people who watch"},
            "task": {"type": "string", "description": "Everything the member must know; it sees nothing else"},
            "mode": {"type": "string", "enum": ["foreground", "background"]},
        },
        "required": ["agent", "task"],
    }
    words = (
        "Give a task to a member of the team. In the foreground you wait for its result; in the background you go on."
    )
    return Tool(name=DELEGATE, description=words, parameters=Raw(msgspec.json.encode(schema)))


_ANSWER_TOOL = Tool(
    name=ANSWER,
    description="Answer a member that asks for permission: approve, deny, or ask the user.",
    parameters=Raw(
        msgspec.json.encode(
            {
                "type": "object",
                "properties": {
                    "escalation_id": {"type": "string"},
                    "decision": {"type": "string", "enum": ["approve", "deny", "ask_user"]},
                    "reason": {"type": "string"},
                },
                "required": ["escalation_id", "decision"],
            }
        )
    ),
)


def delegation_for(turn: Turn, parent: Instance, call: TurnCall, at: int) -> e.Delegated | e.ToolRefused:
    """The delegation that `call` asks for, or why not: the model is told to do the work itself."""
    try:
        asked = msgspec.json.decode(call.tool.arguments, type=_Delegation)
    except msgspec.DecodeError:
        return _refuse(turn, call, at, "invalid_arguments", "agent and task are needed")
    limits = turn.plan.limits
    refusals = (
        (asked.agent not in [card.name for card in turn.plan.agents[1:]], "unknown_agent", "no such member"),
        (parent.depth >= limits.depth, "limit_depth", f"depth limit {limits.depth} reached: do it yourself"),
        (
            len(turn.instances) > limits.children,
            "limit_children",
            f"children limit {limits.children} reached: do it yourself",
        ),
    )
    for holds, code, message in refusals:
        if holds:
            return _refuse(turn, call, at, code, message)
    return e.Delegated(
        turn=turn.id,
        at=at,
        agent=parent.agent,
        call_id=call.id,
        child_instance_id=derive("ag", at, turn.id, call.id),
        child_name=asked.agent,
        mode=asked.mode,
        title=asked.title or asked.agent,
        task=asked.task,
    )


def answer_for(
    turn: Turn, parent: Instance, call: TurnCall, at: int
) -> e.EscalationResult | e.ToolRefused | tuple[Escalation, str]:
    """The orchestrator's decision; the escalation and a reason when it wants the user to decide."""
    try:
        asked = msgspec.json.decode(call.tool.arguments, type=_Decision)
    except msgspec.DecodeError:
        return _refuse(turn, call, at, "invalid_arguments", "escalation_id and decision are needed")
    escalation = turn.escalations.get(asked.escalation_id)
    if escalation is None or escalation.parent != parent.id or not _open(escalation):
        return _refuse(turn, call, at, "unknown_escalation", "no such question is open")
    if asked.decision == "ask_user":
        return escalation, asked.reason or "the team asks for permission"
    return e.EscalationResult(
        turn=turn.id,
        at=at,
        agent=parent.agent,
        escalation_id=escalation.id,
        approve=asked.decision == "approve",
        reason=asked.reason,
        call_id=call.id,
    )


def _open(escalation: Escalation) -> bool:
    return escalation.answer is ApprovalState.OPEN and escalation.approval_id is None


def _refuse(turn: Turn, call: TurnCall, at: int, code: str, message: str) -> e.ToolRefused:
    return e.ToolRefused(turn=turn.id, at=at, call_id=call.id, code=code, message=message)
