"""One agent at work: its own context, its steps, its open calls, and where it stands."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from crocevia.core.messages import AssistantMessage, Message
from crocevia.core.messages import user as say_as_user
from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import Call, CallState
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
    """`due`: its model has something new to read. `inflight`: a call of its model is under way.

    failure: code and message. texts: what it said, step by step. children: those it started. notes: messages for
    its model that wait for the next boundary.
    """

    __slots__ = (
        "agent",
        "answered",
        "attempt",
        "by_call",
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
        "inflight",
        "interruptions",
        "mode",
        "notes",
        "reset",
        "retell",
        "spoke",
        "started",
        "step",
        "stop",
        "task",
        "text_done",
        "texts",
        "thoughts",
        "told",
        "totals",
    )

    def __init__(self, agent: e.Agent, card: AgentCard, depth: int, mode: e.Mode, by_call: str | None) -> None:
        self.agent = agent
        self.card = card
        self.depth = depth
        self.mode = mode
        self.by_call = by_call
        self.task = ""
        self.context: list[Message] = []
        self.notes: list[Message] = []
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[Call] = []
        self.children: list[str] = []
        self.totals = Totals()
        self.started: int | None = None
        self.step = 0
        self.attempt = 1
        self.interruptions = 0
        self.context_tokens = 0
        self.compacted_at = -1
        self.compacting = False
        self.answered: e.ContextAnswered | None = None
        self.due = False
        self.inflight = False
        self.spoke = False
        self.reset: int | None = None
        self.retell = False
        self.text_done = False
        self.told = False
        self.done = False
        self.stop = "end"
        self.failure: tuple[str, str] | None = None

    @property
    def id(self) -> str:
        return self.agent.instance_id

    @property
    def open_calls(self) -> list[Call]:
        return [call for call in self.calls if call.state is not CallState.DONE]

    @property
    def hands_over(self) -> bool:
        """It has nothing more to do than to hand its open calls to whoever started the turn."""
        calls = self.open_calls
        return bool(calls) and all(call.handed_over for call in calls)

    @property
    def at_boundary(self) -> bool:
        """Something can be put into its prompt now."""
        return self.started is not None and not (self.done or self.inflight or self.compacting or self.open_calls)

    @property
    def text(self) -> str:
        return "\n\n".join(self.texts)

    @property
    def last_text(self) -> str:
        return self.texts[-1] if self.texts else ""

    def hear(self, messages: Iterable[Message]) -> None:
        """Note something for its model; it is read at the next boundary."""
        self.notes.extend(messages)
        self.settle()

    def settle(self) -> None:
        """At a boundary: results of the step first, in the order of its calls, then what else was noted."""
        if not self.at_boundary or self.failure:
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
        self.inflight, self.spoke = True, False
        self.step, self.attempt = entry.step, entry.attempt

    def take_answer(self, entry: e.ModelAnswered) -> None:
        self.inflight, self.due, self.spoke = False, False, False
        self.totals += spent(entry.usage, entry.cost_usd)
        self.context_tokens = (entry.usage.input_tokens or 0) + (entry.usage.output_tokens or 0)
        self.context.append(AssistantMessage(text=entry.text or None, tool_calls=entry.calls, opaque=entry.opaque))
        if entry.text:
            self.texts.append(entry.text)
        if entry.reasoning:
            self.thoughts.append(entry.reasoning)
        self.stop = entry.stop
        self.step, self.attempt = entry.step + 1, 1

    def take_failure(self, entry: e.ModelFailed, attempts: int, interruptions: int) -> None:
        self.inflight = False
        self.totals += spent(entry.usage, entry.cost_usd)
        if self.spoke:
            self.reset, self.spoke = entry.attempt, False
        if entry.interrupted:
            self.interruptions += 1
            if self.interruptions > interruptions:
                self.failure = ("limit_interruptions", f"interruptions limit {interruptions} reached")
        elif not entry.retryable or entry.attempt >= attempts:
            self.failure = (entry.code, entry.message)
        self.attempt = entry.attempt + 1

    def take_context(self, entry: e.ContextAnswered) -> None:
        self.compacting = False
        self.totals += spent(entry.usage, entry.cost_usd)
        if entry.items:
            self.context, self.answered = list(entry.items), entry
            self.context_tokens = entry.context_tokens or 0

    def close(self) -> None:
        """Done for good; a failed step leaves its results in the context, so that the context stays sendable."""
        self.context += [call.message() for call in self.calls if not call.handed_over]
        self.calls = []
        self.done = True

    def delegated_to(self, task: str) -> Iterable[Message]:
        return (say_as_user(task),)
