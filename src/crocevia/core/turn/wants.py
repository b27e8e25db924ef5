"""What a turn waits for, read off its state. Values: the driver starts those it has not begun, and stops those gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

from crocevia.core.turn.calls import CallState, TurnCall
from crocevia.core.turn.instance import Instance, Phase
from crocevia.core.turn.machine import Ending, Turn
from crocevia.core.turn.questions import ApprovalState
from crocevia.core.turn.rules import free_slots


class CallModel(Struct, frozen=True):
    """Call the model of `instance`. `separator` goes before the first text delta, so that steps do not run together."""

    instance: str
    step: int
    attempt: int
    separator: str = ""


class RunTool(Struct, frozen=True):
    """Run a server or knowledge tool; its `agent.tool.start` is already in the journal."""

    call_id: str


class AskClient(Struct, frozen=True):
    """Sign and publish (unless it is published), then wait for the client."""

    call_id: str


class Escalate(Struct, frozen=True):
    """A member's question lies with its orchestrator. Nothing to do but wait."""

    escalation_id: str


class AskApproval(Struct, frozen=True):
    """A question lies with the user. Nothing to do but wait: `Turn.deadline` covers its time."""

    approval_id: str


class StartChild(Struct, frozen=True):
    """Prepare the member's own context, then report its `agent.started`."""

    instance: str


class Compact(Struct, frozen=True):
    instance: str
    step: int


class MakeTitle(Struct, frozen=True):
    pass


class End(Struct, frozen=True):
    """Stop what still runs, let it say its last word (1 s at most), then report `TurnClosing`."""

    ending: Ending
    code: str = ""


Want: TypeAlias = CallModel | RunTool | AskClient | Escalate | AskApproval | StartChild | Compact | MakeTitle | End


# --- reading them ---------------------------------------------------------------------------------------------------


def wants_of(turn: Turn) -> tuple[Want, ...]:
    """In a fixed order, without repeats; empty exactly when the turn has ended (or was never opened)."""
    if turn.ended or not turn.root_id:
        return ()
    ending = turn.ending
    if ending is not None:
        return (End(ending[0], ending[1]),)
    return tuple(_wants(turn))


def _wants(turn: Turn) -> Iterator[Want]:
    if turn.plan.title and turn.title is None and turn.title_answer is None:
        yield MakeTitle()
    for instance in turn.instances.values():
        yield from _of_instance(turn, instance)
    yield from (Escalate(item.id) for item in turn.escalations.values() if item.answer is ApprovalState.OPEN)
    yield from (AskApproval(item.id) for item in turn.approvals.values() if item.answer is ApprovalState.OPEN)


def _of_instance(turn: Turn, instance: Instance) -> Iterator[Want]:
    want = _BY_PHASE.get(turn.phase(instance))
    if want is not None:
        yield want(instance)
    for call in instance.calls:
        make = _BY_CALL.get((call.state, call.kind))
        if make is not None and (call.at_work or _granted(turn, instance, call)):
            yield make(call)


def _granted(turn: Turn, instance: Instance, call: TurnCall) -> bool:
    """The first that wait in the queue, as many as there are free slots; none that still needs a yes."""
    waiting = [c for c in instance.calls if (c.state, c.kind) in _BY_CALL and not c.at_work]
    return waiting.index(call) < free_slots(turn, instance)


def _think(instance: Instance) -> Want:
    if instance.compacting:
        return Compact(instance.id, instance.step)
    return CallModel(instance.id, instance.step, instance.attempt, "\n\n" if instance.texts else "")


_BY_PHASE: dict[Phase, Callable[[Instance], Want]] = {
    Phase.NEW: lambda instance: StartChild(instance.id),
    Phase.THINKING: _think,
}
_BY_CALL: dict[tuple[CallState, str], Callable[[TurnCall], Want]] = {
    (CallState.RUNNING, "server"): lambda call: RunTool(call.id),
    (CallState.RUNNING, "knowledge"): lambda call: RunTool(call.id),
    (CallState.PROPOSED, "client"): lambda call: AskClient(call.id),
    (CallState.REQUESTED, "client"): lambda call: AskClient(call.id),
}
