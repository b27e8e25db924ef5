"""One agent at work: its own context, its steps, its open calls, and where it stands."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from crocevia.core.messages import AssistantMessage, Message
from crocevia.core.messages import user as say_as_user
from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import CallState, TurnCall
from crocevia.core.turn.plan import AgentCard, Totals, spent


class Phase(StrEnum):
    NEW = "new"  # delegated, its context not yet open
    THINKING = "thinking"  # a model call is due or under way
    ACTING = "acting"  # some of its calls have no result
    WAITING = "waiting"  # nothing to say until a background child is done
    READY = "ready"  # said what it had to say
    FAILED = "failed"  # about to be closed
    DONE = "done"


class Instance:
    """One agent of a turn. Its attributes are changed by `Turn.apply` alone."""

    __slots__ = (
        "agent",
        "attempt",
        "by_call",
        "call_id",
        "calls",
        "card",
        "children",
        "compacted_at",
        "compacting",
        "context",
        "context_tokens",
        "depth",
        "done",
        "due",
        "failure",
        "failure_reported",
        "inflight",
        "interruptions",
        "mode",
        "new_context",
        "notes",
        "reasoning",
        "reset_attempt",
        "retold",
        "retry_at",
        "started",
        "step",
        "stop",
        "streamed",
        "task",
        "text_done",
        "texts",
        "totals",
    )

    def __init__(self, agent: e.Speaker, card: AgentCard, depth: int, mode: e.Mode, by_call: str | None) -> None:
        self.agent = agent
        self.card = card
        self.depth = depth
        self.mode = mode
        self.by_call = by_call
        """The parent's call that started it; None: the root."""
        self.task = ""
        self.context: list[Message] = []
        self.notes: list[Message] = []
        """Messages for its model that wait for the next step boundary."""
        self.texts: list[str] = []
        """What it said, step by step."""
        self.reasoning: list[str] = []
        self.calls: list[TurnCall] = []
        self.children: list[str] = []
        """Ids of the instances it started."""
        self.totals = Totals()
        self.started: int | None = None
        """ms UTC; None: delegated, not at work yet."""
        self.step = 0
        self.attempt = 1
        self.retry_at: int | None = None
        """When the next attempt may begin, ms UTC, where the last failure said so."""
        self.interruptions = 0
        self.context_tokens = 0
        self.compacted_at = -1
        """The step at which its context was last summarised."""
        self.compacting = False
        self.new_context: e.ContextAnswered | None = None
        """A summary in use that readers have not been told of."""
        self.due = False
        """Its model has something new to read."""
        self.inflight = False
        """A call of its model is under way."""
        self.call_id: str | None = None
        """The record of its latest call."""
        self.streamed = False
        """Readers have seen deltas of the call under way."""
        self.reset_attempt: int | None = None
        """The lost attempt whose deltas are to be taken back."""
        self.retold: int | None = None
        """How much of the text of earlier steps was sent again after a reset; None: all that is to be."""
        self.text_done = False
        self.failure_reported = False
        self.done = False
        self.stop = "end"
        self.failure: tuple[str, str] | None = None
        """Code and message."""

    @property
    def id(self) -> str:
        return self.agent.instance_id

    @property
    def open_calls(self) -> list[TurnCall]:
        return [call for call in self.calls if call.state is not CallState.DONE]

    @property
    def hands_over(self) -> bool:
        """It has nothing more to do than to hand its open calls to whoever started the turn."""
        calls = self.open_calls
        return bool(calls) and all(call.handed_over for call in calls)

    @property
    def at_step_boundary(self) -> bool:
        """Something can be put into its prompt now."""
        return self.started is not None and not (self.done or self.inflight or self.compacting or self.open_calls)

    @property
    def text(self) -> str:
        return "\n\n".join(self.texts)

    @property
    def last_text(self) -> str:
        return self.texts[-1] if self.texts else ""

    def note(self, messages: Iterable[Message]) -> None:
        """Note something for its model; it is read at the next boundary."""
        self.notes.extend(messages)
        self.settle()

    def settle(self) -> None:
        """At a boundary: results of the step first, in the order of its calls, then what else was noted."""
        if not self.at_step_boundary or self.failure:
            return
        news = [call.message() for call in self.calls]
        if news or self.notes:
            self.context += [*news, *self.notes]
            self.calls, self.notes = [], []
            self.due = True

    def start(self, at: int, context: Iterable[Message]) -> None:
        self.started = at
        self.context = list(context)
        self.due = True

    def begin_call(self, entry: e.ModelStarted) -> None:
        self.inflight, self.streamed = True, False
        self.step, self.attempt, self.call_id = entry.step, entry.attempt, entry.call

    def apply_answer(self, entry: e.ModelAnswered) -> None:
        self.inflight, self.due, self.streamed = False, False, False
        self.totals += spent(entry.usage, entry.cost_usd)
        self.context_tokens = (entry.usage.input_tokens or 0) + (entry.usage.output_tokens or 0)
        self.context.append(
            AssistantMessage(text=entry.text or None, tool_calls=entry.calls, provider_blocks=entry.provider_blocks)
        )
        if entry.text:
            self.texts.append(entry.text)
        if entry.reasoning:
            self.reasoning.append(entry.reasoning)
        self.stop = entry.stop
        self.step, self.attempt = entry.step + 1, 1

    def apply_failure(self, entry: e.ModelFailed, attempts: int, interruptions: int) -> None:
        self.inflight = False
        self.totals += spent(entry.usage, entry.cost_usd)
        if self.streamed:
            self.reset_attempt, self.streamed = entry.attempt, False
        if entry.interrupted:
            self.interruptions += 1
            if self.interruptions > interruptions:
                self.failure = ("limit_interruptions", f"interruptions limit {interruptions} reached")
        elif not entry.retryable or entry.attempt >= attempts:
            self.failure = (entry.code, entry.message)
        self.attempt, self.retry_at = entry.attempt + 1, entry.retry_at

    def apply_context(self, entry: e.ContextAnswered) -> None:
        self.compacting = False
        self.totals += spent(entry.usage, entry.cost_usd)
        if entry.items:
            self.context, self.new_context = list(entry.items), entry
            self.context_tokens = entry.context_tokens or 0

    def close(self) -> None:
        """Done for good; a failed step leaves its results in the context, so that the context stays sendable."""
        self.context += [call.message() for call in self.calls if not call.handed_over]
        self.calls = []
        self.done = True

    def initial_context(self, task: str) -> Iterable[Message]:
        return (say_as_user(task),)
