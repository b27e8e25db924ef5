"""What came in from outside, as facts. Whether it still counts was decided where its row was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from crocevia.core.turn import Turn
from crocevia.core.turn import entries as e
from crocevia.core.turn.questions import failure
from crocevia.log import Command


class SteerCommand(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    target: str | None = None
    """An instance; None: the orchestrator."""


class ClientToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    output: str
    is_error: bool = False


class ApprovalDecision(msgspec.Struct, frozen=True, kw_only=True):
    approve: bool
    reason: str = ""


def ending(kind: Literal["approval", "tool"], turn: str, key: str, reason: str, at: int) -> Command:
    """What an operator says to something that nobody answers: the tool failed, the approval is refused."""
    if kind == "approval":
        return Command(
            0, turn, "approval", key, msgspec.json.encode(ApprovalDecision(approve=False, reason=reason)), at
        )
    output = bytes(failure("ended_by_operator", reason)).decode()
    return Command(0, turn, "tool_output", key, msgspec.json.encode(ClientToolOutput(output=output, is_error=True)), at)


def fact_of(turn: Turn, command: Command) -> e.Entry | None:
    """The fact that a command of this turn is; None if it is about something the turn does not know."""
    make = _FACTS.get(command.kind)
    return None if make is None else make(turn, command)


def _cancel(turn: Turn, command: Command) -> e.Entry:
    return e.CancelAsked(turn=turn.id, at=command.at, reason=command.payload.decode())


def _steer(turn: Turn, command: Command) -> e.Entry:
    steer = msgspec.json.decode(command.payload, type=SteerCommand)
    return e.TurnSteered(turn=turn.id, at=command.at, steer_id=f"st_{command.id}", text=steer.text, target=steer.target)


def _approval(turn: Turn, command: Command) -> e.Entry:
    decision = msgspec.json.decode(command.payload, type=ApprovalDecision)
    return e.ApprovalResponse(
        turn=turn.id, at=command.at, approval_id=command.key, approve=decision.approve, reason=decision.reason
    )


def _output(turn: Turn, command: Command) -> e.Entry | None:
    call = turn.calls.get(command.key)
    if call is None:
        return None
    result = msgspec.json.decode(command.payload, type=ClientToolOutput)
    return e.ToolResult(
        turn=turn.id,
        at=command.at,
        agent=turn.instances[call.instance].agent,
        call_id=call.id,
        output=result.output,
        is_error=result.is_error,
    )


def _claim(turn: Turn, command: Command) -> e.Entry:
    call_id, _, holder = command.key.rpartition(":")
    return e.ToolClaimed(turn=turn.id, at=command.at, call_id=call_id, holder=holder)


_FACTS: dict[str, Callable[[Turn, Command], e.Entry | None]] = {
    "cancel": _cancel,
    "steer": _steer,
    "approval": _approval,
    "tool_output": _output,
    "claim": _claim,
}
