"""A run: what its caller asked is in the journal, its caller's functions end it, its own tools are bounded."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from crocevia.core.calls import AnswerFormat, GenerationOptions, Reasoning, Sampling, ToolChoice
from crocevia.core.messages import AssistantMessage, Message, Tool, ToolCall, ToolMessage, user
from crocevia.core.turn import AgentCard, Plan, ToolCard, Turn, TurnLimits, advance, hydrate, open_turn, wants_of
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.run_request import RunRequest, continued

LOOK = Tool(name="look", description="", parameters=Raw(b"{}"))
PLAN = Plan(
    agents=(AgentCard(name="a", model="m", tools=("read", "look")),),
    tools=(ToolCard(name="read", kind="server"), ToolCard(name="look", kind="caller")),
    limits=TurnLimits(tool_calls=2),
)


class Run:
    """A turn with its journal."""

    def __init__(self, *said: Message, history: tuple[Message, ...] = ()) -> None:
        self.turn = Turn(history)
        request = RunRequest(said=said or (user("hi"),), tools=(LOOK,))
        self.journal = open_turn(self.turn, "cmpl_1", PLAN, "hi", 1, request=request)

    def tell(self, fact: e.Entry) -> None:
        self.journal += advance(self.turn, fact, 2)

    def answers(self, *names: str, text: str = "") -> None:
        (want,) = wants_of(self.turn)
        assert isinstance(want, w.CallModel)
        about = {"turn": "cmpl_1", "at": 2, "instance": want.instance, "step": want.step, "attempt": 1}
        self.tell(e.ModelStarted(**about))  # type: ignore[arg-type]  # one of each kind
        calls = tuple(ToolCall(id=f"{name}{n}", name=name, arguments=Raw(b"{}")) for n, name in enumerate(names))
        self.tell(e.ModelAnswered(**about, calls=calls, text=text, stop="tool_use" if calls else "end"))  # type: ignore[arg-type]

    def reads(self) -> None:
        """Its own tools come to their results."""
        for want in wants_of(self.turn):
            assert isinstance(want, w.RunTool)
            agent = self.turn.root.agent
            self.tell(e.ToolComplete(turn="cmpl_1", at=2, agent=agent, call_id=want.call_id, result=Raw(b'"ok"')))

    def closes(self) -> None:
        (want,) = wants_of(self.turn)
        assert isinstance(want, w.End) and want.ending == "completed"
        self.tell(e.TurnClosing(turn="cmpl_1", at=2))
        assert isinstance(self.turn.terminal, e.TurnCompleted) and wants_of(self.turn) == ()


def test_the_model_reads_what_was_said_and_the_readers_see_the_input() -> None:
    run = Run(user("one"), AssistantMessage(text="two"), user("three"), history=(user("zero"),))
    assert [message.text for message in run.turn.context(run.turn.root_id)] == ["zero", "one", "two", "three"]  # type: ignore[union-attr]
    assert run.turn.input == "hi"
    assert hydrate(e.decode(e.encode(entry)) for entry in run.journal).turn.request == run.turn.request  # type: ignore[union-attr]


def test_a_callers_function_ends_the_turn_once_its_own_tools_are_done() -> None:
    run = Run()
    run.answers("read", "look")
    assert [type(want) for want in wants_of(run.turn)] == [w.RunTool]
    run.reads()
    run.closes()
    context = run.turn.context(run.turn.root_id)
    assert [getattr(message, "call_id", None) for message in context] == [None, None, "read0"]  # none of the caller's
    rebuilt = hydrate(run.journal)
    assert rebuilt.history == context and rebuilt.active is None


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_run_found_at_any_point_wants_the_same(cut: int) -> None:
    run = Run()
    run.answers("read", "look")
    run.reads()
    again = Turn()
    for entry in run.journal[:cut]:
        again.apply(entry)
    following = [entry for entry in advance(again, None, 2)]
    assert following == [] or following[0] == run.journal[cut]


def test_a_steer_that_comes_while_the_caller_is_awaited_is_dropped_and_not_lost() -> None:
    run = Run()
    run.answers("look")
    run.tell(e.TurnSteered(turn="cmpl_1", at=2, steer_id="st_1", text="wait"))
    run.closes()
    assert any(isinstance(entry, e.SteerDropped) and entry.steer_id == "st_1" for entry in run.journal)


def test_own_calls_beyond_the_limit_are_refused_and_those_of_the_caller_are_not_counted() -> None:
    run = Run()
    run.answers("read", "read", "read", "look")
    refused = [entry for entry in run.journal if isinstance(entry, e.ToolRefused)]
    assert [entry.code for entry in refused] == ["limit_tool_calls"]
    run.reads()
    run.closes()


def test_what_a_caller_left_open_is_answered_for_it() -> None:
    asked = AssistantMessage(tool_calls=tuple(ToolCall(id=n, name="look", arguments=Raw(b"{}")) for n in ("a", "b")))
    history = (user("hi"), asked)
    done = ToolMessage(call_id="b", content="fine")
    stray = ToolMessage(call_id="z", content="?")
    both = continued(history, (done, stray, user("go on")))
    assert [getattr(message, "call_id", None) for message in both] == [None, None, "b", "a", None]
    assert continued((user("hi"),), (user("x"),)) == (user("hi"), user("x"))


def test_the_options_of_a_run_that_an_earlier_version_stored_are_still_its_own() -> None:
    earlier = (
        b'{"type":"turn.opened","turn":"cmpl_1","at":1,"plan":%s,"brief":{"said":[],"max_tokens":77,"parallel":false,'
        b'"choice":{"mode":"required","name":"look"},"format":{"param":"text.format"},"sampling":{"temperature":0.5},'
        b'"thinking":{"effort":"high"},"session":"s","stream":false,"encode":"chat.completions"}}'
    )
    entry = e.decode(earlier % msgspec.json.encode(PLAN))
    assert isinstance(entry, e.TurnOpened) and entry.request is not None
    assert entry.request.encode == "chat.completions"
    assert entry.request.options == GenerationOptions(
        max_tokens=77,
        stream=False,
        session="s",
        tool_choice=ToolChoice(mode="required", name="look"),
        parallel_tool_calls=False,
        format=AnswerFormat(param="text.format"),
        sampling=Sampling(temperature=0.5),
        reasoning=Reasoning(effort="high"),
    )
    assert e.decode(e.encode(entry)) == entry
