"""What holds of every turn, whatever order things happen in and wherever the process dies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from crocevia.core.messages import ToolCall
from crocevia.core.turn import TurnLimits, hydrate, open_turn, wants_of
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.calls import CallState
from crocevia.core.turn.instance import Phase
from crocevia.core.turn.rules import next_entry

from .world import World, call, card, delegate, plan

INDEX = st.integers(0, 10_000)
TOOL_NAMES = ("read", "write", "danger", "email", "forbidden", "unheard")


class Turns(RuleBasedStateMachine):
    """Random work on one turn; every step is checked, then the turn is driven to its end and judged."""

    world: World
    snapshots: list[tuple[int, tuple[w.Want, ...]]]

    @initialize(
        rounds=st.sampled_from((8, 8, 5, 2)),
        depth=st.sampled_from((2, 2, 1, 0)),
        slots=st.integers(1, 3),
        cost=st.sampled_from((None, None, None, 1.0, 2.5)),
        wall=st.sampled_from((None, None, None, 1_000, 200_000)),
        title=st.booleans(),
    )
    def open(self, rounds: int, depth: int, slots: int, cost: float | None, wall: int | None, title: bool) -> None:
        limits = TurnLimits(
            rounds=rounds, depth=depth, children=4, parallel_tools=slots, cost_usd=cost, wall_ms=wall, interruptions=5
        )
        agents = (card("main", free=True), card("researcher", free=True), card("writer", free=True))
        self.world = World(plan(limits=limits, title=title, agents=agents))
        self.snapshots = []
        self.checked = 0

    # --- the world acts

    @rule(index=INDEX, text=st.sampled_from(("", "a", "b")), data=st.data())
    @precondition(lambda self: not self.world.turn.ended)
    def do_something_wanted(self, index: int, text: str, data: st.DataObject) -> None:
        want = self.world.wants[index % len(self.world.wants)]
        getattr(self, f"do_{type(want).__name__}", self.do_nothing)(want, text, data)

    @rule(index=INDEX, data=st.data())
    @precondition(lambda self: not self.world.turn.ended)
    def do_something_wanted_too(self, index: int, data: st.DataObject) -> None:
        """Twice in the table of rules: most of what happens is work."""
        self.do_something_wanted(index, "w", data)

    @rule(index=INDEX, data=st.data())
    @precondition(lambda self: not self.world.turn.ended)
    def answer_a_question(self, index: int, data: st.DataObject) -> None:
        """Go where questions are: the orchestrator that was asked, or the user."""
        asked = {item.parent for item in self.world.turn.escalations.values() if item.answer == "open"}
        wants = [
            want
            for want in self.world.wants
            if isinstance(want, w.AskApproval) or (isinstance(want, w.CallModel) and want.instance in asked)
        ]
        if wants:
            want = wants[index % len(wants)]
            getattr(self, f"do_{type(want).__name__}")(want, "q", data)

    def do_nothing(self, want: Any, text: str, data: st.DataObject) -> None:
        """Escalate: the orchestrator's model answers it. AskApproval: the user does."""

    def do_CallModel(self, want: w.CallModel, text: str, data: st.DataObject) -> None:
        what = data.draw(
            st.sampled_from(("answer", "answer", "call", "call", "call", "call", "start", "say", "fail", "refuse"))
        )
        if what == "start":
            self.world.start(want)
        elif what == "say":
            self.world.start(want)
            self.world.say(want, want.separator + "x")
        elif what == "fail":
            self.world.fail(want)
        elif what == "refuse":
            self.world.fail(want, "refused", retryable=False)
        else:
            calls = data.draw(st.lists(self.calls(want.instance), min_size=int(what == "call"), max_size=3))
            tokens = data.draw(st.sampled_from((10, 900)))
            self.world.answer(want, text, *calls, tokens=tokens)

    def calls(self, instance: str) -> st.SearchStrategy[ToolCall]:
        open_questions = [item.id for item in self.world.turn.escalations.values()]
        choices: list[st.SearchStrategy[ToolCall]] = [
            st.sampled_from(TOOL_NAMES).map(call),
            st.tuples(
                st.sampled_from(("researcher", "writer", "main")), st.sampled_from(("foreground", "background"))
            ).map(lambda pair: delegate(*pair)),
            st.just(call("delegate_task", nonsense=1)),
        ]
        if open_questions:
            decisions = st.sampled_from(("approve", "deny", "ask_user"))
            choices.append(
                st.tuples(st.sampled_from(open_questions), decisions).map(
                    lambda pair: call("answer_escalation", escalation_id=pair[0], decision=pair[1])
                )
            )
        return st.one_of(choices)

    def do_RunTool(self, want: w.RunTool, text: str, data: st.DataObject) -> None:
        self.world.finish_tool(want, text)

    def do_AskClient(self, want: w.AskClient, text: str, data: st.DataObject) -> None:
        if self.world.turn.calls[want.call_id].state is CallState.PROPOSED:
            self.world.publish(want)
        elif data.draw(st.booleans()):
            self.world.claim(want.call_id, text)
        else:
            self.world.deliver(want.call_id, text)

    def do_AskApproval(self, want: w.AskApproval, text: str, data: st.DataObject) -> None:
        self.world.respond(want.approval_id, data.draw(st.booleans()))

    def do_StartChild(self, want: w.StartChild, text: str, data: st.DataObject) -> None:
        self.world.start_child(want)

    def do_Compact(self, want: w.Compact, text: str, data: st.DataObject) -> None:
        self.world.compact(want, data.draw(st.booleans()))

    def do_MakeTitle(self, want: w.MakeTitle, text: str, data: st.DataObject) -> None:
        self.world.give_title(data.draw(st.sampled_from(("T", None))))

    def do_End(self, want: w.End, text: str, data: st.DataObject) -> None:
        if data.draw(st.integers(0, 3)) == 3:
            self.world.close()

    @rule(index=INDEX)
    @precondition(lambda self: not self.world.turn.ended)
    def steer(self, index: int) -> None:
        targets = [None, "ag_nobody", *self.world.turn.instances]
        if index % 3 == 0:
            self.world.steer("s", targets[index // 3 % len(targets)])

    @rule(ms=st.sampled_from((1, 1, 1, 1, 500, 500, 130_000, 400_000)))
    def time_passes(self, ms: int) -> None:
        self.world.tick(ms)

    @rule(dice=INDEX)
    def cancel(self, dice: int) -> None:
        if dice % 16 == 7:
            self.world.cancel()

    @rule(index=INDEX)
    def repeat_an_old_fact(self, index: int) -> None:
        """A late or doubled report changes nothing that is settled."""
        facts = [entry for entry in self.world.journal if isinstance(entry, REPORTED)]
        if facts:
            assert self.world.tell(facts[index % len(facts)]) == []

    # --- and the process dies

    @rule(dice=INDEX)
    def crash_after_the_commit(self, dice: int) -> None:
        self.world.crash(resume=dice % 16 != 7)

    @rule(index=INDEX, data=st.data())
    @precondition(lambda self: not self.world.turn.ended)
    def crash_before_the_commit(self, index: int, data: st.DataObject) -> None:
        """What was decided but not committed never happened."""
        length = len(self.world.journal)
        ran, spent = len(self.world.ran), self.world.spent
        self.do_something_wanted(index, "lost", data)
        del self.world.journal[length:], self.world.ran[ran:]
        self.world.spent = spent
        self.world.crash()

    # --- always

    @invariant()
    def rebuilding_gives_the_same_wants_from_every_prefix(self) -> None:
        turn = self.world.rebuild(self.checked)
        for entry in self.world.journal[self.checked :]:
            turn.apply(entry)
        assert wants_of(turn) == self.world.wants
        self.checked = max(0, len(self.world.journal) - 7)

    @invariant()
    def wants_are_empty_exactly_when_the_turn_has_ended(self) -> None:
        assert (self.world.wants == ()) is self.world.turn.ended
        assert len(set(self.world.wants)) == len(self.world.wants)

    @invariant()
    def what_is_at_work_stays_within_its_limits(self) -> None:
        turn = self.world.turn
        for instance in turn.instances.values():
            assert sum(item.at_work for item in instance.calls) <= turn.plan.limits.parallel_tools
            assert instance.depth <= turn.plan.limits.depth
            assert instance.step <= turn.plan.limits.rounds
            assert turn.phase(instance) is not Phase.FAILED or instance.id == turn.root_id or turn.frozen
        assert len(turn.instances) <= turn.plan.limits.children + 1

    # --- the end

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.drive_to_the_end()
        judge(self.world)

    def drive_to_the_end(self) -> None:
        for _ in range(400):
            if self.world.turn.ended:
                return
            want = self.world.wants[-1]
            match want:
                case w.CallModel():
                    self.world.answer(want, "end")
                case w.AskClient() | w.AskApproval():
                    self.world.tick(400_000)
                    if isinstance(want, w.AskClient) and want in self.world.wants:
                        self.world.publish(want)
                case w.Escalate():
                    self.drive_the_orchestrator()
                case w.RunTool():
                    self.world.finish_tool(want)
                case w.StartChild():
                    self.world.start_child(want)
                case w.Compact():
                    self.world.compact(want)
                case w.MakeTitle():
                    self.world.give_title()
                case w.End():
                    self.world.close()
        raise AssertionError(f"the turn does not end: {self.world.wants}")

    def drive_the_orchestrator(self) -> None:
        others = [want for want in self.world.wants if not isinstance(want, w.Escalate | w.AskApproval)]
        assert others or any(isinstance(want, w.AskApproval) for want in self.world.wants), "nobody can move"
        for want in others:
            if isinstance(want, w.CallModel):
                return self.world.answer(want, "end")
            if isinstance(want, w.RunTool):
                return self.world.finish_tool(want)
            if isinstance(want, w.StartChild):
                return self.world.start_child(want)
            if isinstance(want, w.Compact):
                return self.world.compact(want)
            if isinstance(want, w.AskClient):
                self.world.publish(want)
        return self.world.tick(400_000)


def judge(world: World) -> None:
    journal = world.journal
    terminals = world.of(e.TurnCompleted) + world.of(e.TurnCancelled) + world.of(e.TurnFailed)
    assert len(terminals) == 1
    assert journal[-1] is not None
    assert isinstance(journal[-1], e.TERMINAL)
    assert isinstance(journal[-1], e.TurnCancelled) is world.cancelled
    judge_agents(world)
    judge_calls(world)
    applied = [item.steer_id for item in world.of(e.SteerApplied) + world.of(e.SteerDropped)]
    assert sorted(applied) == sorted(item.steer_id for item in world.of(e.TurnSteered))
    judge_money(world)
    assert len(world.of(e.ChatTitleUpdated)) == int(world.turn.plan.title)
    assert wants_of(world.rebuild()) == ()
    judge_cuts(world)


REPORTED = (
    e.ModelAnswered,
    e.ModelFailed,
    e.ToolComplete,
    e.ToolRequest,
    e.ToolResult,
    e.ApprovalResponse,
    e.AgentStarted,
    e.TitleAnswered,
)

# Entries that only the machine makes. The first three of a turn are the caller's.
DECIDED = (
    e.TextReset,
    e.Delegated,
    e.ToolRefused,
    e.ToolStart,
    e.Escalated,
    e.EscalationResult,
    e.ApprovalRequest,
    e.ApprovalExpired,
    e.SteerApplied,
    e.SteerDropped,
    e.Compacting,
    e.Compacted,
    e.TextDone,
    e.AgentFailed,
    e.AgentDone,
    *e.TERMINAL,
)


def judge_cuts(world: World) -> None:
    """Cut before any decision, even inside a transaction: the rebuilt turn decides the very same."""
    turn = world.rebuild(3)
    for entry in world.journal[3:]:
        assert not turn.ended
        if isinstance(entry, DECIDED):
            decided = next_entry(turn, entry.at)
            assert decided is not None
            assert e.encode(decided) == e.encode(entry)
        turn.apply(entry)


def judge_agents(world: World) -> None:
    started = [item.agent.instance_id for item in world.of(e.AgentStarted)]
    done = [item.agent.instance_id for item in world.of(e.AgentDone)]
    delegated = [item.child_instance_id for item in world.of(e.Delegated)]
    assert sorted(started) == sorted(done)
    assert len(set(started)) == len(started)
    assert set(delegated) == set(started) - {world.turn.root_id}
    order = {instance: position for position, instance in enumerate(done)}
    for item in world.of(e.AgentStarted):
        if item.agent.parent_id is not None:
            assert order[item.agent.instance_id] < order[item.agent.parent_id]
    for item in world.of(e.AgentDone):
        texts = [text for text in world.of(e.TextDone) if text.agent.instance_id == item.agent.instance_id]
        assert len(texts) == int(item.status == "completed")


def judge_calls(world: World) -> None:
    for opening, closing in ((e.ToolStart, e.ToolComplete), (e.ToolRequest, e.ToolResult)):
        opened = [item.call_id for item in world.of(opening)]
        assert len(set(opened)) == len(opened)
        assert sorted(opened) == sorted(item.call_id for item in world.of(closing))
    for request in world.of(e.ApprovalRequest):
        answers = [
            item
            for item in world.of(e.ApprovalResponse) + world.of(e.ApprovalExpired)
            if item.approval_id == request.approval_id
        ]
        assert len(answers) == 1
    asked = [item.escalation_id for item in world.of(e.Escalated)]
    assert sorted(asked) == sorted(item.escalation_id for item in world.of(e.EscalationResult))
    idempotent = {tool.name for tool in world.turn.plan.tools if tool.idempotent}
    once = [item for item in world.ran if world.turn.calls[item].tool.name not in idempotent]
    assert len(set(once)) == len(once)


def judge_money(world: World) -> None:
    started = [(item.instance, item.step, item.attempt) for item in world.of(e.ModelStarted)]
    settled = [(item.instance, item.step, item.attempt) for item in world.of(e.ModelAnswered) + world.of(e.ModelFailed)]
    assert sorted(started) == sorted(settled)
    assert len(set(started)) == len(started)
    usage = world.terminal.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (
        world.spent.input_tokens,
        world.spent.output_tokens,
        world.spent.cost_usd,
    )
    parts = [item.usage.cost_usd for item in world.of(e.AgentDone)]
    titles = [item.cost_usd or 0 for item in world.of(e.TitleAnswered)]
    assert sum(parts) + sum(titles) == usage.cost_usd
    assert usage.duration_ms == world.terminal.at - world.journal[0].at


TestTurns = Turns.TestCase
TestTurns.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "count", [pytest.param(500, marks=pytest.mark.torture), pytest.param(2_000, marks=pytest.mark.long)]
)
def test_many_random_turns(count: int) -> None:
    run_state_machine_as_test(
        Turns, settings=settings(TestTurns.settings, max_examples=count, stateful_step_count=60, database=None)
    )


def test_the_next_turn_of_a_chat_starts_from_the_context_and_the_totals_of_the_last() -> None:
    world = World()
    world.give_title("T")
    world.answer(world.want(w.CallModel), "one")
    world.close()
    chat = hydrate([e.ContextReplaced(turn="", at=1, items=world.turn.history), *world.journal])
    assert (chat.title, chat.active, chat.totals) == ("T", None, world.terminal.chat_usage)
    turn = chat.open()
    open_turn(turn, "cmpl_2", plan(), "two", 5_000, before=chat.totals)
    assert [type(item).__name__ for item in turn.context(turn.root_id)] == [
        "UserMessage",
        "UserMessage",
        "AssistantMessage",
        "UserMessage",
    ]
    assert turn.before.cost_usd == world.spent.cost_usd
