"""Taking in a fact and all that follows from it; opening a turn; going on after a crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import CallState
from crocevia.core.turn.ids import derive
from crocevia.core.turn.instance import Instance, Phase
from crocevia.core.turn.machine import Turn
from crocevia.core.turn.plan import Plan, Totals
from crocevia.core.turn.questions import ApprovalState, failure
from crocevia.core.turn.rules import next_entry
from crocevia.core.turn.run_request import RunRequest
from crocevia.core.turn.wants import AskClient, wants_of


def advance(turn: Turn, fact: e.Entry | None, at: int) -> list[e.Entry]:
    """Apply `fact` and what follows from it; return those entries, to be appended in one transaction, in order.

    A fact that answers nothing any more (a late result, a second answer) is dropped: the list is empty.
    None: nothing happened but the time. What is said to a turn counts as of `at`, and is noted no earlier than what
    the turn has noted already. After a failed append this `turn` is ahead of its journal: rebuild it.
    """
    entries: list[e.Entry] = []
    if fact is not None:
        accepts = _ACCEPTS.get(type(fact))
        if accepts is None or turn.ended or not accepts(turn, fact):
            return []
        entries.append(_note(turn, fact))
        if type(fact) in e.DELTAS:
            return entries
    while (entry := next_entry(turn, at)) is not None:
        entries.append(_note(turn, entry))
    return entries


def _note(turn: Turn, entry: e.Entry) -> e.Entry:
    if entry.at < turn.latest:
        entry = replace(entry, at=turn.latest)
    turn.apply(entry)
    return entry


def open_turn(
    turn: Turn,
    turn_id: str,
    plan: Plan,
    message: str,
    at: int,
    *,
    before: Totals | None = None,
    wire: int = 3,
    attachments: tuple[Raw, ...] = (),
    request: RunRequest | None = None,
) -> list[e.Entry]:
    """The entries that open `turn_id` for a message of the user; `plan.agents[0]` leads."""
    card = plan.agents[0]
    agent = e.Speaker(derive("ag", at, turn_id, "root"), card.name, "orchestrator", None, card.model)
    entries: list[e.Entry] = [
        e.TurnOpened(turn=turn_id, at=at, plan=plan, before=before or Totals(), wire=wire, request=request),
        e.TurnStarted(turn=turn_id, at=at, input=message, attachments=attachments),
        e.AgentStarted(turn=turn_id, at=at, agent=agent),
    ]
    for entry in entries:
        turn.apply(entry)
    return entries + advance(turn, None, at)


def recover(turn: Turn, at: int, *, resume: bool = True, costs: Mapping[str, float | None] = {}) -> list[e.Entry]:
    """What to append before a turn goes on in a new process (the old one is gone and fenced off).

    Lost model calls are tried again, lost tools have an unknown outcome unless they are idempotent, everything
    that waits goes on waiting. `resume` False: the turn fails as `interrupted` instead. costs: of the calls under
    way that have a record, in USD; nobody was asked by the others.
    """
    entries: list[e.Entry] = []
    if turn.ended or not turn.root_id:
        return entries
    for instance in list(turn.instances.values()):
        if instance.inflight:
            entries += advance(turn, interrupted(turn, instance, at, costs), at)
    if not resume:
        failing = e.TurnFailing(turn=turn.id, at=at, code="interrupted", message="the server was restarted")
        entries += advance(turn, failing, at)
    for call in turn.open_calls(CallState.RUNNING):
        card = turn.plan.tool(call.tool.name)
        if card is None or not card.idempotent:
            entries += advance(turn, _outcome_unknown(turn, call.id, at), at)
    return entries + advance(turn, None, at)


def interrupted(turn: Turn, instance: Instance, at: int, costs: Mapping[str, float | None] = {}) -> e.ModelFailed:
    """A model call that was lost, at what its record says: the estimate, where nobody settled it."""
    return e.ModelFailed(
        turn=turn.id,
        at=at,
        instance=instance.id,
        step=instance.step,
        attempt=instance.attempt,
        code="interrupted",
        retryable=True,
        interrupted=True,
        cost_usd=0.0 if instance.card.free else costs.get(instance.call_id, 0.0) if instance.call_id else None,
    )


def _outcome_unknown(turn: Turn, call_id: str, at: int) -> e.ToolComplete:
    call = turn.calls[call_id]
    return e.ToolComplete(
        turn=turn.id,
        at=at,
        agent=turn.instances[call.instance].agent,
        call_id=call_id,
        result=failure("outcome_unknown", "the server was restarted while it ran; it may have happened"),
        is_error=True,
    )


def request_client(turn: Turn, call_id: str, signature: e.Signature, at: int) -> e.ToolRequest:
    """The publication of a client call; its deadline counts from the moment the model asked."""
    call = turn.calls[call_id]
    card = turn.plan.tool(call.tool.name)
    return e.ToolRequest(
        turn=turn.id,
        at=at,
        agent=turn.instances[call.instance].agent,
        call_id=call_id,
        tool_name=call.tool.name,
        args=call.tool.arguments,
        signature=signature,
        deadline=at + (card.timeout_ms if card else 0),
    )


# --- which facts still answer something -----------------------------------------------------------------------


def _model_may_start(turn: Turn, fact: e.ModelStarted) -> bool:
    instance = turn.instances.get(fact.instance)
    if instance is None or turn.frozen or turn.is_failing(instance) or instance.inflight or instance.compacting:
        return False
    thinking = turn.phase(instance) is Phase.THINKING
    return thinking and (instance.step, instance.attempt) == (fact.step, fact.attempt)


def _in_flight(turn: Turn, fact: e.ModelAnswered | e.ModelFailed) -> bool:
    instance = turn.instances.get(fact.instance)
    return instance is not None and instance.inflight and (instance.step, instance.attempt) == (fact.step, fact.attempt)


def _speaks(turn: Turn, fact: e.AgentTextDelta | e.AgentReasoningDelta) -> bool:
    instance = turn.instances.get(fact.agent.instance_id)
    return instance is not None and instance.inflight and not turn.frozen


def _at_work(turn: Turn, fact: e.AgentPlan | e.Artifact) -> bool:
    instance = turn.instances.get(fact.agent.instance_id)
    return instance is not None and not instance.done and not turn.frozen


def _is(*states: CallState) -> Callable[[Turn, Any], bool]:
    def holds(turn: Turn, fact: Any) -> bool:
        call = turn.calls.get(fact.call_id)
        return call is not None and call.state in states and not turn.instances[call.instance].done

    return holds


def _may_request(turn: Turn, fact: e.ToolRequest) -> bool:
    call = turn.calls.get(fact.call_id)
    return call is not None and call.state is CallState.PROPOSED and AskClient(call.id) in wants_of(turn)


def _may_claim(turn: Turn, fact: e.ToolClaimed) -> bool:
    call = turn.calls.get(fact.call_id)
    return call is not None and call.state is CallState.REQUESTED and call.holder is None


def _may_answer(turn: Turn, fact: e.ApprovalResponse) -> bool:
    approval = turn.approvals.get(fact.approval_id)
    return (
        approval is not None
        and approval.answer is ApprovalState.OPEN
        and fact.at < approval.deadline
        and not turn.frozen
    )


def _may_start(turn: Turn, fact: e.AgentStarted) -> bool:
    child = turn.instances.get(fact.agent.instance_id)
    return child is not None and turn.phase(child) is Phase.NEW and not turn.frozen and not turn.is_failing(child)


_ACCEPTS: dict[type, Callable[[Turn, Any], bool]] = {
    e.ModelStarted: _model_may_start,
    e.ModelAnswered: _in_flight,
    e.ModelFailed: _in_flight,
    e.AgentTextDelta: _speaks,
    e.AgentReasoningDelta: _speaks,
    e.ToolDelta: _is(CallState.RUNNING),
    e.ToolComplete: _is(CallState.RUNNING),
    e.ToolRequest: _may_request,
    e.ToolClaimed: _may_claim,
    e.ToolResult: _is(CallState.REQUESTED),
    e.AgentStarted: _may_start,
    e.AgentPlan: _at_work,
    e.Artifact: _at_work,
    e.ApprovalResponse: _may_answer,
    e.TitleAnswered: lambda turn, fact: turn.plan.title and turn.title_answer is None,
    e.ChatTitleUpdated: lambda turn, fact: fact.title != turn.title,
    e.ContextAnswered: lambda turn, fact: turn.instances[fact.instance].compacting,
    e.TurnSteered: lambda turn, fact: not turn.closing and fact.steer_id not in turn.steers,
    e.CancelAsked: lambda turn, fact: not turn.closing and (turn.cause is None or turn.cause[0] != "cancelled"),
    e.TurnFailing: lambda turn, fact: turn.cause is None and not turn.closing,
    e.TurnClosing: lambda turn, fact: turn.ending is not None and not turn.closing,
}
