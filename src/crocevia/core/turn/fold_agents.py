"""How the turn itself, its agents and their models change with an entry. Only `Turn.apply` calls these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from crocevia.core.messages import Message, UserMessage
from crocevia.core.messages import user as say_as_user
from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import Call, kind_of
from crocevia.core.turn.files import placeholders
from crocevia.core.turn.ids import derive
from crocevia.core.turn.instance import Instance
from crocevia.core.turn.questions import Steer, failure
from crocevia.core.turn.run_request import continued

if TYPE_CHECKING:
    from crocevia.core.turn.machine import Turn


def opened(turn: Turn, entry: e.TurnOpened) -> None:
    turn.id, turn.opened_at = entry.turn, entry.at
    turn.plan, turn.before, turn.wire = entry.plan, entry.before, entry.wire
    turn.request = entry.request


def started(turn: Turn, entry: e.TurnStarted) -> None:
    turn.input = entry.input
    try:
        turn.files = placeholders(entry.attachments)
    except (msgspec.MsgspecError, UnicodeError):
        raise e.Unreadable("a file of a message cannot be read") from None


def steered(turn: Turn, entry: e.TurnSteered) -> None:
    if entry.steer_id in turn.steers:
        raise e.Unreadable("a steer is accepted twice")
    turn.steers[entry.steer_id] = Steer(entry, turn.root_id)


def steer_applied(turn: Turn, entry: e.SteerApplied) -> None:
    steer = turn.steers[entry.steer_id]
    steer.meet("applied")
    turn.instances[entry.instance].hear([say_as_user(steer.text)])


def steer_dropped(turn: Turn, entry: e.SteerDropped) -> None:
    turn.steers[entry.steer_id].meet("dropped")


def titled(turn: Turn, entry: e.ChatTitleUpdated) -> None:
    turn.title = entry.title


def title_answered(turn: Turn, entry: e.TitleAnswered) -> None:
    turn.title_answer = entry
    turn.known_cost += entry.cost_usd or 0


def cancelling(turn: Turn, entry: e.CancelAsked) -> None:
    turn.cause = ("cancelled", "cancelled", entry.reason)


def failing(turn: Turn, entry: e.TurnFailing) -> None:
    turn.cause = ("failed", entry.code, entry.message)


def closing(turn: Turn, entry: e.TurnClosing) -> None:
    # What a root that is ready ends with is fixed here: closing it makes it «done», not «ready».
    turn.cause = turn.ending
    turn.closing = True


def ended(turn: Turn, entry: e.Terminal) -> None:
    if any(not instance.done for instance in turn.instances.values()):
        raise e.Unreadable("a turn ends before its agents")
    turn.terminal = entry


def _asked(turn: Turn) -> tuple[Message, ...]:
    if turn.request is not None:
        return turn.request.said
    said = say_as_user(turn.input)
    return (UserMessage(parts=(*said.parts, *turn.files)) if turn.files else said,)


def agent_started(turn: Turn, entry: e.AgentStarted) -> None:
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
    child.start(entry.at, child.delegated_to(child.task))


def agent_failed(turn: Turn, entry: e.AgentFailed) -> None:
    instance = turn.instances[entry.agent.instance_id]
    instance.failure, instance.told = (entry.code, entry.message), True


def agent_done(turn: Turn, entry: e.AgentDone) -> None:
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
        parent.hear([say_as_user(msgspec.json.encode(news).decode())])


def text_done(turn: Turn, entry: e.TextDone) -> None:
    turn.instances[entry.agent.instance_id].text_done = True


def reasoning_done(turn: Turn, entry: e.ReasoningDone) -> None:
    turn.instances[entry.agent.instance_id].thoughts = []


def spoke(turn: Turn, entry: e.TextDelta | e.ReasoningDelta) -> None:
    instance = turn.instances[entry.agent.instance_id]
    instance.spoke, instance.retell = instance.inflight, False


def reset(turn: Turn, entry: e.TextReset) -> None:
    instance = turn.instances[entry.agent.instance_id]
    instance.reset, instance.retell = None, bool(instance.texts)


def remark(turn: Turn, entry: e.Entry) -> None:
    """For the reader's eyes only."""


def model_started(turn: Turn, entry: e.ModelStarted) -> None:
    instance = turn.instances[entry.instance]
    if instance.inflight:
        raise e.Unreadable("two model calls of one agent at once")
    instance.begin_call(entry)
    for escalation in turn.escalations.values():
        if escalation.parent == instance.id:
            escalation.seen = True


def model_answered(turn: Turn, entry: e.ModelAnswered) -> None:
    instance = turn.instances[entry.instance]
    if not instance.inflight:
        raise e.Unreadable("an answer to a call that nobody made")
    instance.take_answer(entry)
    turn.known_cost += entry.cost_usd or 0
    for escalation in turn.escalations.values():
        escalation.passed_over = escalation.passed_over or (escalation.parent == instance.id and escalation.seen)
    for index, tool in enumerate(entry.calls):
        call_id = derive("tc", entry.at, turn.id, instance.id, entry.step, index)
        call = Call(call_id, instance.id, tool, kind_of(turn.plan, instance.card.tools, tool.name), entry.at)
        instance.calls.append(call)
        turn.calls[call_id] = call
    instance.settle()


def model_failed(turn: Turn, entry: e.ModelFailed) -> None:
    instance = turn.instances[entry.instance]
    if not instance.inflight:
        raise e.Unreadable("the failure of a call that nobody made")
    limits = turn.plan.limits
    instance.take_failure(entry, limits.attempts, limits.interruptions)
    turn.known_cost += entry.cost_usd or 0
    instance.settle()


def compacting(turn: Turn, entry: e.Compacting) -> None:
    instance = turn.instances[entry.agent.instance_id]
    instance.compacting, instance.compacted_at = True, instance.step


def context_answered(turn: Turn, entry: e.ContextAnswered) -> None:
    instance = turn.instances[entry.instance]
    instance.take_context(entry)
    turn.known_cost += entry.cost_usd or 0
    instance.settle()


def compacted(turn: Turn, entry: e.Compacted) -> None:
    turn.instances[entry.agent.instance_id].answered = None
