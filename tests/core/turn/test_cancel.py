"""A cancel at every place of a journal: one `turn.cancelled`, everything closed, nothing heard afterwards."""

from __future__ import annotations

import pytest

from crocevia.core.turn import Turn, TurnLimits, advance, recover, wants_of
from crocevia.core.turn import entries as e
from crocevia.core.turn.wants import AskApproval, AskClient, CallModel, Compact, MakeTitle, RunTool, StartChild

from .world import TURN, World, call, card, delegate, plan


def member(world: World, name: str) -> CallModel:
    wants = [want for want in world.wants if isinstance(want, CallModel)]
    return next(want for want in wants if world.turn.instances[want.instance].agent.name == name)


def a_team_with_everything() -> World:
    """Title, text, tools of all kinds, a question to the user, members on both grounds, an escalation, a steer."""
    world = World(plan(agents=tuple(card(name, free=True) for name in ("main", "researcher", "writer"))))
    first = world.want(CallModel)
    world.start(first)
    world.say(first, "Let us ")
    world.give_title()
    world.answer(first, "Let us see.", delegate("researcher"), delegate("writer", "background", "p2"))
    while any(isinstance(want, StartChild) for want in world.wants):
        world.start_child(world.want(StartChild))
    world.steer("gently")
    world.answer(member(world, "researcher"), "", call("danger"), call("email", "p2"), call("read", "p3"))
    world.publish(world.want(AskClient))
    world.claim(world.want(AskClient).call_id, "one")
    world.finish_tool(world.want(RunTool))
    world.deliver(world.want(AskClient).call_id)
    escalation = world.of(e.Escalated)[0].escalation_id
    decision = call("answer_escalation", "p9", escalation_id=escalation, decision="ask_user")
    world.answer(member(world, "main"), "", decision)
    world.respond(world.want(AskApproval).approval_id, True)
    world.finish_tool(world.want(RunTool))
    world.answer(member(world, "researcher"), "found", tokens=900)
    world.answer(member(world, "writer"), "written")
    while any(isinstance(want, CallModel) for want in world.wants):
        world.answer(world.want(CallModel), "said")
    world.close()
    return world


def a_full_context() -> World:
    world = World(plan(title=False))
    world.answer(world.want(CallModel), "", call("read"), tokens=900)
    world.finish_tool(world.want(RunTool))
    world.compact(world.want(Compact))
    world.answer(world.want(CallModel), "done")
    world.close()
    return world


def a_model_that_fails() -> World:
    world = World(plan(title=False))
    for _ in range(2):
        want = world.want(CallModel)
        world.start(want)
        world.say(want, "Half of")
        world.fail(want)
    world.close()
    return world


def a_limit_that_is_reached() -> World:
    world = World(plan(limits=TurnLimits(cost_usd=0.3)))
    for _ in range(2):
        world.answer(world.want(CallModel), "", call("write"))
        if isinstance(world.wants[0], MakeTitle | RunTool):
            world.finish_tool(world.want(RunTool))
    world.close()
    return world


STORIES = (a_team_with_everything, a_full_context, a_model_that_fails, a_limit_that_is_reached)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
@pytest.mark.parametrize("crash", [False, True], ids=["at work", "after a crash"])
def test_a_cancel_at_any_place_of_the_journal_ends_it_as_cancelled(story: object, crash: bool) -> None:
    world = story()  # type: ignore[operator]
    assert isinstance(world.journal[-1], e.TERMINAL)
    closing = [type(entry) for entry in world.journal].index(e.TurnClosing)  # what follows is written with it
    for place in range(3, closing + 1):
        turn = world.rebuild(place)
        told = recover(turn, world.now) if crash else []
        told += advance(turn, e.CancelAsked(turn=TURN, at=world.now), world.now)
        assert turn.cause == ("cancelled", "cancelled", "user")
        for late in world.journal[place:]:
            told += advance(turn, late, world.now)
        told += advance(turn, e.TurnClosing(turn=TURN, at=world.now), world.now)
        judge(turn, [*world.journal[:place], *told])


def judge(turn: Turn, journal: list[e.Entry]) -> None:
    assert [type(entry) for entry in journal if isinstance(entry, e.TERMINAL)] == [e.TurnCancelled]
    assert isinstance(journal[-1], e.TurnCancelled) and wants_of(turn) == ()
    started = [entry.agent.instance_id for entry in journal if isinstance(entry, e.AgentStarted)]
    assert sorted(started) == sorted(entry.agent.instance_id for entry in journal if isinstance(entry, e.AgentDone))
    for opening, closing in ((e.ToolStart, e.ToolComplete), (e.ToolRequest, e.ToolResult)):
        opened = sorted(entry.call_id for entry in journal if isinstance(entry, opening))
        assert opened == sorted(entry.call_id for entry in journal if isinstance(entry, closing))


def test_a_cancel_after_the_end_is_nothing() -> None:
    world = a_full_context()
    assert advance(world.turn, e.CancelAsked(turn=TURN, at=world.now), world.now) == []
