"""The turn machine, story by story."""

from __future__ import annotations

import json

import pytest

from crocevia.core.messages import AssistantMessage, ToolMessage, UserMessage
from crocevia.core.turn import TurnLimits, Unreadable, recover, wants_of
from crocevia.core.turn import entries as e
from crocevia.core.turn.wants import AskApproval, AskClient, CallModel, Compact, End, Escalate, RunTool, StartChild

from .world import World, call, card, delegate, plan


def untitled(**changes: object) -> World:
    return World(plan(title=False, **changes))


def test_a_plain_answer_is_told_in_the_order_of_the_protocol() -> None:
    world = World()
    want = world.want(CallModel)
    world.start(want)
    world.give_title("Greetings")
    world.say(want, "Hi")
    world.answer(want, "Hi there")
    assert world.wants == (End("completed", "end"),)
    world.close()
    assert world.types() == [
        "turn.started",
        "agent.started",
        "chat.title.updated",
        "agent.text.delta",
        "agent.text.done",
        "agent.done",
        "turn.completed",
    ]
    assert world.wants == ()
    assert world.terminal.finish_reason == "stop"
    assert (world.terminal.usage.input_tokens, world.terminal.usage.cost_usd) == (12, 0.75)


def test_a_tool_is_announced_before_it_runs_and_its_result_is_read_next() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "Let me see.", call("read", path="/a"))
    assert world.types()[-1] == "agent.tool.start"
    world.finish_tool(world.want(RunTool), {"lines": 3})
    want = world.want(CallModel)
    assert (want.step, want.separator) == (1, "\n\n")
    context = world.turn.context(world.turn.root_id)
    assert [type(item) for item in context] == [UserMessage, UserMessage, AssistantMessage, ToolMessage]
    assert context[-1].content == '{"lines": 3}'
    world.answer(want, "Three lines.")
    world.close()
    assert world.of(e.TextDone)[0].text == "Let me see.\n\nThree lines."
    assert world.of(e.AgentDone)[0].usage.tool_calls == 1


def test_more_tools_than_slots_queue_in_their_order() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", *[call("write", f"p{i}") for i in range(4)])
    assert len(world.of(e.ToolStart)) == 2
    for expected in (3, 4, 4, 4):
        world.finish_tool(world.want(RunTool))
        assert len(world.of(e.ToolStart)) == expected
    ids = [item.call_id for item in world.turn.context(world.turn.root_id) if isinstance(item, ToolMessage)]
    assert ids == ["p0", "p1", "p2", "p3"]


def test_client_calls_take_slots_too() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", *[call("email", f"p{i}") for i in range(3)])
    assert sum(isinstance(want, AskClient) for want in world.wants) == 2
    for want in world.wants:
        world.publish(want)  # type: ignore[arg-type]
    assert len(world.of(e.ToolRequest)) == 2
    world.deliver(world.of(e.ToolRequest)[0].call_id)
    world.publish(next(w for w in world.wants if w.call_id not in [r.call_id for r in world.of(e.ToolRequest)]))  # type: ignore
    assert len(world.of(e.ToolRequest)) == 3


def test_a_client_call_is_requested_once_claimed_once_and_resolved_once() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", call("email", to="a@b"))
    want = world.want(AskClient)
    world.publish(want)
    world.publish(want)
    world.claim(want.call_id, "one")
    world.claim(want.call_id, "two")
    world.deliver(want.call_id, "first")
    world.deliver(want.call_id, "second")
    assert [len(world.of(kind)) for kind in (e.ToolRequest, e.ToolClaimed, e.ToolResult)] == [1, 1, 1]
    assert world.of(e.ToolResult)[0].output == "first"


def test_a_client_that_never_answers_is_a_tool_timeout_at_the_absolute_deadline_even_after_a_crash() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", call("email"))
    world.publish(world.want(AskClient))
    deadline = world.turn.deadline
    assert deadline == world.now + 120_000
    world.now += 119_000
    world.crash()
    assert (world.turn.deadline, len(world.of(e.ToolRequest))) == (deadline, 1)
    world.tick(999)
    assert not world.of(e.ToolResult)
    world.tick(1)
    result = world.of(e.ToolResult)[0]
    assert result.is_error
    assert result.timed_out
    assert json.loads(result.output)["code"] == "tool_timeout"
    assert isinstance(world.wants[0], CallModel)


@pytest.mark.parametrize("verdict", [True, False, None])
def test_an_approval_decides_over_its_call_and_expires_closed(verdict: bool | None) -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", call("danger", rm="/"))
    request = world.of(e.ApprovalRequest)[0]
    assert world.wants == (AskApproval(request.approval_id),)
    if verdict is None:
        world.tick(300_000)
        assert world.types()[-3:] == ["approval.expire", "agent.tool.start", "agent.tool.complete"]
    else:
        world.respond(request.approval_id, verdict)
    started = bool([want for want in world.wants if isinstance(want, RunTool)])
    assert started is (verdict is True)
    if not verdict:
        code = json.loads(bytes(world.of(e.ToolComplete)[0].result))["code"]
        assert code == ("approval_expired" if verdict is None else "approval_denied")
        assert isinstance(world.wants[0], CallModel)


@pytest.mark.parametrize(
    ("name", "code"), [("forbidden", "unknown_tool"), ("nothing", "unknown_tool"), ("write", "tool_denied")]
)
def test_a_call_that_may_not_run_is_an_error_the_model_reads(name: str, code: str) -> None:
    world = World(plan(title=False, agents=(card("main", permissions={"write": "deny"}),)))
    world.answer(world.want(CallModel), "", call(name))
    complete = world.of(e.ToolComplete)[0]
    assert (complete.is_error, json.loads(bytes(complete.result))["code"]) == (True, code)
    assert not [want for want in world.wants if isinstance(want, RunTool)]
    assert world.want(CallModel).step == 1


def test_a_foreground_child_suspends_its_parent_and_its_answer_is_the_result() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", delegate("researcher"))
    assert [type(want) for want in world.wants] == [StartChild]
    world.start_child(world.want(StartChild))
    world.answer(world.want(CallModel), "found it")
    assert world.types()[2:] == ["agent.delegated", "agent.started", "agent.text.done", "agent.done"]
    assert world.turn.context(world.turn.root_id)[-1] == ToolMessage(call_id="p1", content="found it")
    world.answer(world.want(CallModel), "it is found")
    world.close()
    assert [done.agent.role for done in world.of(e.AgentDone)] == ["member", "orchestrator"]


def test_background_children_run_beside_their_parent_which_waits_for_them_at_the_end() -> None:
    world = untitled()
    world.answer(
        world.want(CallModel), "", delegate("researcher", "background", "p1"), delegate("writer", "background", "p2")
    )
    assert {type(want) for want in world.wants} == {CallModel, StartChild}
    root_call = next(want for want in world.wants if isinstance(want, CallModel))
    world.answer(root_call, "waiting for them")
    assert {type(want) for want in world.wants} == {StartChild}
    for _ in range(2):
        world.start_child(world.want(StartChild))
    first, second = [want for want in world.wants if isinstance(want, CallModel)]
    world.answer(second, "two")
    news = world.turn.context(world.turn.root_id)[-1]
    assert isinstance(news, UserMessage)
    assert json.loads(news.text)["result"] == "two"
    world.answer(first, "one")
    assert [want.instance for want in world.wants if isinstance(want, CallModel)] == [world.turn.root_id]
    world.answer(world.want(CallModel), "done")
    world.close()
    assert world.types()[-1] == "turn.completed"


def test_news_that_comes_while_tools_run_is_read_after_their_results() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", delegate("writer", "background"), call("write", "p2"))
    world.start_child(world.want(StartChild))
    world.answer(world.want(CallModel), "written")
    world.finish_tool(world.want(RunTool))
    kinds = [type(item) for item in world.turn.context(world.turn.root_id)[-4:]]
    assert kinds == [AssistantMessage, ToolMessage, ToolMessage, UserMessage]


@pytest.mark.parametrize("decision", ["approve", "deny", "ask_user"])
def test_a_member_asks_its_orchestrator_which_decides_or_asks_the_user(decision: str) -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", delegate("researcher"))
    world.start_child(world.want(StartChild))
    world.answer(world.want(CallModel), "", call("danger"))
    escalation = world.of(e.Escalated)[0].escalation_id
    assert Escalate(escalation) in world.wants
    question = world.turn.context(world.turn.root_id)[-1]
    assert isinstance(question, ToolMessage)
    assert json.loads(question.content)["escalation_id"] == escalation
    world.answer(
        world.want(CallModel), "", call("answer_escalation", "p9", escalation_id=escalation, decision=decision)
    )
    if decision == "ask_user":
        request = world.of(e.ApprovalRequest)[0]
        assert request.agent.role == "orchestrator"
        assert request.origin_agent_id == world.of(e.Escalated)[0].agent.instance_id
        world.respond(request.approval_id, True)
    result = world.of(e.EscalationResult)[0]
    assert result.approve is (decision != "deny")
    if decision != "deny":
        world.finish_tool(world.want(RunTool))
    world.answer(world.want(CallModel), "member is done")
    assert world.turn.context(world.turn.root_id)[-1] == ToolMessage(call_id="p9", content="member is done")


def test_a_question_that_the_orchestrator_passes_over_is_a_no() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", delegate("researcher"))
    world.start_child(world.want(StartChild))
    world.answer(world.want(CallModel), "", call("danger"))
    world.answer(world.want(CallModel), "never mind")
    assert world.of(e.EscalationResult)[0].approve is False
    world.answer(world.want(CallModel), "then not")
    assert isinstance(world.turn.context(world.turn.root_id)[-1], UserMessage)


def test_a_steer_enters_the_prompt_at_the_next_boundary_and_keeps_the_turn_open() -> None:
    world = untitled()
    want = world.want(CallModel)
    world.start(want)
    steer = world.steer("in French")
    assert not world.of(e.SteerApplied)
    world.answer(want, "Hello")
    assert world.of(e.SteerApplied)[0].steer_id == steer
    assert world.want(CallModel).step == 1
    assert world.turn.context(world.turn.root_id)[-1].text == "in French"  # type: ignore[union-attr]


def test_a_steer_that_comes_too_late_is_reported_dropped() -> None:
    world = untitled()
    world.start(world.want(CallModel))
    world.cancel()
    world.steer()
    world.close()
    assert [item.reason for item in world.of(e.SteerDropped)] == ["turn_ended"]
    assert world.types()[-1] == "turn.cancelled"


def test_cancel_closes_everything_children_first_and_counts_what_was_spent() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", delegate("researcher"), call("write", "p2"))
    world.start_child(world.want(StartChild))
    child = next(want for want in world.wants if isinstance(want, CallModel))
    world.start(child)
    world.cancel()
    assert world.wants == (End("cancelled", "cancelled"),)
    world.fail(child)
    world.close()
    assert world.types()[-4:] == ["agent.done", "agent.tool.complete", "agent.done", "turn.cancelled"]
    assert world.terminal.usage.cost_usd == 0.375
    assert world.terminal.reason == "user"


def test_a_call_cut_without_a_word_makes_the_cost_unknown_unless_its_engine_is_free() -> None:
    for free, cost in ((False, None), (True, 0.0)):
        world = World(plan(title=False, agents=(card("main", free=free),)))
        world.start(world.want(CallModel))
        world.cancel()
        world.close()
        assert world.terminal.usage.cost_usd == cost


def test_a_lost_call_is_tried_again_and_what_it_said_is_taken_back() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "First.", call("read"))
    world.finish_tool(world.want(RunTool))
    want = world.want(CallModel)
    world.start(want)
    world.say(want, want.separator + "half a sent")
    world.crash()
    assert world.types()[-2:] == ["agent.text.reset", "agent.text.delta"]
    assert world.of(e.AgentTextDelta)[-1].delta == "First."
    assert world.want(CallModel) == CallModel(want.instance, 1, 2, "\n\n")


def test_a_lost_call_that_said_nothing_is_tried_again_quietly() -> None:
    world = untitled()
    world.start(world.want(CallModel))
    before = world.types()
    world.crash()
    assert world.types() == before
    assert world.want(CallModel).attempt == 2


def test_a_server_tool_under_way_at_a_crash_has_an_unknown_outcome_unless_it_is_idempotent() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", call("write", "p1"), call("read", "p2"))
    world.crash()
    unknown = world.of(e.ToolComplete)
    assert len(unknown) == 1
    assert json.loads(bytes(unknown[0].result))["code"] == "outcome_unknown"
    rerun = world.want(RunTool)
    assert world.turn.calls[rerun.call_id].tool.name == "read"


def test_an_operator_may_prefer_an_honest_failure_to_paying_twice() -> None:
    world = untitled()
    world.start(world.want(CallModel))
    world.crash(resume=False)
    assert world.wants == (End("failed", "interrupted"),)
    world.close()
    assert world.terminal.code == "interrupted"


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize(
    ("call", "costs", "told"),
    [
        ("call_1", {"call_1": 0.25}, 0.25),
        ("call_1", {"call_1": None}, None),  # its model has no price
        ("call_1", {}, 0.0),  # it has no record: nobody was asked
        (None, {}, None),  # a journal of an earlier version
    ],
)
def test_a_lost_call_costs_what_its_record_says(
    resume: bool, call: str | None, costs: dict[str, float | None], told: float | None
) -> None:
    world = untitled()
    want = world.want(CallModel)
    world.tell(e.ModelStarted(**world.base(), instance=want.instance, step=0, attempt=1, call=call))
    world.commit(recover(world.turn, world.now, resume=resume, costs=costs))
    assert [entry.cost_usd for entry in world.of(e.ModelFailed)] == [told]
    if not resume:
        world.close()
        assert (world.terminal.code, world.terminal.usage.cost_usd) == ("interrupted", told)


def test_a_model_that_keeps_failing_fails_its_turn_with_its_code() -> None:
    world = untitled()
    world.fail(world.want(CallModel))
    world.fail(world.want(CallModel))
    world.close()
    assert (world.terminal.code, world.types()[-3:]) == (
        "upstream_failed",
        ["agent.failed", "agent.done", "turn.failed"],
    )


def test_a_failed_member_is_an_error_result_for_its_parent_and_takes_its_children_along() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", delegate("researcher"))
    world.start_child(world.want(StartChild))
    world.answer(world.want(CallModel), "", delegate("writer", "background"))
    world.start_child(world.want(StartChild))
    member = next(w for w in world.wants if isinstance(w, CallModel) and world.turn.instances[w.instance].depth == 1)
    world.fail(member, "refused", retryable=False)
    assert [(d.agent.name, d.status) for d in world.of(e.AgentDone)] == [
        ("writer", "cancelled"),
        ("researcher", "failed"),
    ]
    result = world.turn.context(world.turn.root_id)[-1]
    assert isinstance(result, ToolMessage)
    assert result.is_error
    assert world.want(CallModel).instance == world.turn.root_id


LIMITS = {
    "rounds": (TurnLimits(rounds=2), "limit_rounds", "rounds limit 2 reached"),
    "cost": (TurnLimits(cost_usd=0.3), "limit_cost", "cost limit 0.3 USD reached"),
    "wall": (TurnLimits(wall_ms=5_000), "limit_wall_time", "wall_time limit 5000 ms reached"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_ends_the_turn_with_its_name_and_value(name: str) -> None:
    limits, code, message = LIMITS[name]
    world = untitled(limits=limits)
    while not isinstance(world.wants[0], End):
        want = world.wants[0]
        if isinstance(want, CallModel):
            world.answer(want, "", call("read"))
        else:
            world.finish_tool(want)  # type: ignore[arg-type]
        world.tick(1_000)
    world.close()
    assert (world.terminal.code, world.terminal.message) == (code, message)


@pytest.mark.parametrize(
    ("limits", "code"), [(TurnLimits(depth=0), "limit_depth"), (TurnLimits(children=1), "limit_children")]
)
def test_team_limits_are_told_to_the_model_which_goes_on(limits: TurnLimits, code: str) -> None:
    world = untitled(limits=limits)
    world.answer(world.want(CallModel), "", delegate("writer", "background"), delegate("writer", "background", "p2"))
    errors = [json.loads(bytes(item.result))["code"] for item in world.of(e.ToolComplete) if item.is_error]
    assert code in errors
    assert CallModel in [type(want) for want in world.wants]


@pytest.mark.parametrize("works", [True, False])
def test_a_full_context_is_summarised_once_before_the_next_call_at_its_cost(works: bool) -> None:
    world = untitled()
    world.answer(world.want(CallModel), "", call("read"), tokens=900)
    world.finish_tool(world.want(RunTool))
    assert world.types()[-1] == "agent.context.compacting"
    assert world.of(e.Compacting)[0].threshold_tokens == 800
    world.compact(world.want(Compact), works)
    assert (world.types()[-1] == "agent.context.compacted") is works
    assert (len(world.turn.context(world.turn.root_id)) == 1) is works
    world.answer(world.want(CallModel), "done")
    world.close()
    assert world.terminal.usage.input_tokens == 917


@pytest.mark.parametrize(("answer", "title"), [("Mine", "Mine"), (None, "hello")])
def test_the_title_is_published_once_and_derived_when_there_is_none(answer: str | None, title: str) -> None:
    world = World()
    world.give_title(answer)
    world.give_title("again")
    assert [item.title for item in world.of(e.ChatTitleUpdated)] == [title]


def test_results_that_answer_nothing_any_more_are_dropped() -> None:
    world = untitled()
    want = world.want(CallModel)
    world.answer(want, "", call("write"))
    run = world.want(RunTool)
    world.finish_tool(run)
    length = len(world.journal)
    world.finish_tool(run)
    world.tell(e.ModelStarted(**world.base(), instance=want.instance, step=0, attempt=1))
    world.respond("apr_unknown", True)
    world.claim("tc_unknown", "x")
    world.close()
    assert len(world.journal) == length


def test_a_journal_that_cannot_be_is_refused() -> None:
    world = untitled()
    world.answer(world.want(CallModel), "hi")
    world.close()
    broken = (
        [*world.journal, world.journal[-1]],
        [world.journal[0], *world.journal[3:]],
        world.journal[:-2] + world.journal[-1:],
    )
    for journal in broken:
        turn = world.rebuild(0)
        with pytest.raises(Unreadable):
            for entry in journal:
                turn.apply(entry)
    with pytest.raises(Unreadable):
        e.decode(b'{"type":"turn.unheard"}')


def test_nothing_is_wanted_before_a_turn_is_opened() -> None:
    assert wants_of(untitled().rebuild(0)) == ()
