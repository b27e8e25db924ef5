"""A run under way, as its caller sees it: like a call, but of as many model calls as the agent makes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from crocevia.core.answers import Answer
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.events import (
    ModelEvent,
    ProviderBlock,
    ReasoningDelta,
    RefusalDelta,
    Stopped,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
)
from crocevia.core.messages import ToolCall
from crocevia.core.turn import entries as e
from crocevia.core.usage import Usage
from crocevia.runtime.calls import just_ends
from crocevia.runtime.gateway import Call, Cut
from crocevia.runtime.turns.driver import Driver

MAX_WAITING: Final = 256  # batches that may wait for a slow reader
STOP_SECONDS: Final = 3.0  # for what is stopped


class StepEnded(msgspec.Struct, frozen=True):
    """What the model says from here on is another answer: it went on with the results of the agent's own tools."""


RunEvent: TypeAlias = ModelEvent | StepEnded


class RunFold:
    """Everything the caller was given so far, as one answer."""

    def __init__(self) -> None:
        self.texts: list[list[str]] = [[]]
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.calls: list[ToolCall] = []
        """Those that are the caller's to run."""
        self.stop: StopReason | None = None
        self.model_calls: list[Call] = []
        """Made in this process."""
        self.replayed: list[Usage] = []
        """Of model calls made by an earlier process."""

    @property
    def usage(self) -> Usage:
        """Of all calls together; a figure that one of them did not report is unknown."""
        return sum_of([call.fold.usage for call in self.model_calls] + self.replayed)

    def answer(self) -> Answer:
        return Answer(
            text="\n\n".join("".join(step) for step in self.texts if step),
            reasoning="".join(self.reasoning),
            refusal="".join(self.refusal),
            tool_calls=tuple(self.calls),
            blocks=(),
            usage=self.usage,
            stop=self.stop,
        )

    def add(self, event: RunEvent) -> None:
        if isinstance(event, TextDelta):
            self.texts[-1].append(event.text)
        elif isinstance(event, ReasoningDelta):
            self.reasoning.append(event.text)
        elif isinstance(event, RefusalDelta):
            self.refusal.append(event.text)
        elif isinstance(event, ToolCallDone):
            self.calls.append(event.call)
        elif isinstance(event, Stopped):
            self.stop = event.reason
        elif isinstance(event, StepEnded):
            self.texts.append([])


def sum_of(usages: Iterable[Usage]) -> Usage:
    """The sum of each figure; None if one of them is not known."""
    every = list(usages)

    def of(name: str) -> int | None:
        values = [getattr(usage, name) for usage in every]
        return None if None in values or not values else sum(values)

    return Usage(
        input_tokens=of("input_tokens"),
        output_tokens=of("output_tokens"),
        cache_read_tokens=of("cache_read_tokens"),
        cache_write_tokens=of("cache_write_tokens"),
        reasoning_tokens=of("reasoning_tokens"),
    )


class RunOutput:
    """What the root's model says, on its way to the run's caller: a `RunObserver`.

    Calls of the agent's own tools are left out, and so are the provider blocks of an answer with such calls.
    """

    def __init__(
        self,
        caller_tools: Iterable[str],
        forbidden: frozenset[str] = frozenset(),
        *,
        sole_reader: bool,
        resumable: bool,
    ) -> None:
        self.sole_reader = sole_reader
        self.resumable = resumable
        self.fold = RunFold()
        self.batches: deque[list[RunEvent]] = deque()
        self.arrived = asyncio.Event()
        """Set when there is a batch, or the turn is over."""
        self.call: Call | None = None
        """The model call under way, or the last one."""
        self.error: GatewayError | None = None
        """With which the last call failed."""
        self.spoiled = False
        """A model call failed after the caller was given some of it: that cannot be taken back."""
        self._caller_tools = frozenset(caller_tools)
        self._forbidden = forbidden
        self._fail_turn: Callable[[str, str], None] | None = None
        self._taken = asyncio.Event()
        self._closed = False
        self._blocks: list[RunEvent] = []
        self._hidden: set[int] = set()
        self._midway = False
        self._steps = 0

    # --- as the turn sees it ---------------------------------------------------------------------------------

    def call_started(self, call: Call, fail_turn: Callable[[str, str], None]) -> None:
        self.spoiled = self.spoiled or self._midway
        self.call, self._fail_turn = call, fail_turn
        self.fold.model_calls.append(call)
        self._blocks, self._hidden, self._midway = [], set(), False
        self._next_step()

    async def receive(self, batch: list[ModelEvent]) -> None:
        visible: list[RunEvent] = [self._renumbered(event) for event in batch if self._is_visible(event)]
        if any(isinstance(event, Stopped) for event in batch):
            self._midway = False
            if not self._hidden:
                visible[-1:-1] = self._blocks  # before the end
        else:
            self._midway = True
        if visible and not self.spoiled:
            self._put(visible)
        while len(self.batches) > MAX_WAITING and not self._closed:
            self._taken.clear()
            await self._taken.wait()

    def call_failed(self, error: GatewayError) -> None:
        self.error = error

    def replay(self, answers: Iterable[e.ModelAnswered]) -> None:
        """Take what the journal has of a run that went on without its caller."""
        for answer in answers:
            self._next_step()
            self.fold.replayed.append(answer.usage)
            batch: list[RunEvent] = [ReasoningDelta(answer.reasoning)] if answer.reasoning else []
            batch += [TextDelta(answer.text)] if answer.text else []
            calls = [call for call in answer.calls if call.name in self._caller_tools]
            batch += [ToolCallDone(index, call) for index, call in enumerate(calls)]
            batch.append(Stopped(StopReason(answer.stop)))
            self._put(batch)

    def _next_step(self) -> None:
        if self._steps:
            self._put([StepEnded()])
        self._steps += 1

    def _is_visible(self, event: ModelEvent) -> bool:
        if isinstance(event, ProviderBlock):
            self._blocks.append(event)
            return False
        name = _tool_name(event)
        if name is not None and name not in self._caller_tools:
            self._hidden.add(event.index)  # type: ignore[union-attr]  # what has a name has an index
            if name in self._forbidden and self._fail_turn is not None:
                self._fail_turn(Reason.CHOICE_UNMET.value, "a tool was called that was not allowed")
        return not (isinstance(event, _CALL_EVENTS) and event.index in self._hidden)

    def _renumbered(self, event: ModelEvent) -> ModelEvent:
        """The caller's calls are counted without the others."""
        if not self._hidden or not isinstance(event, _CALL_EVENTS):
            return event
        return msgspec.structs.replace(event, index=event.index - sum(one < event.index for one in self._hidden))

    def _put(self, batch: list[RunEvent]) -> None:
        if not self._closed:
            self.batches.append(batch)
            self.arrived.set()

    # --- as the run sees it ----------------------------------------------------------------------------------

    def take(self) -> list[RunEvent]:
        batch = self.batches.popleft()
        self._taken.set()
        for event in batch:
            self.fold.add(event)
        return batch

    def close(self) -> None:
        """No more is taken: the turn must not wait for its reader, nor keep what nobody reads."""
        self._closed = True
        self._taken.set()


class RunTurn(NamedTuple):
    """The turn of a run, wherever it is driven."""

    id: str
    driver: Callable[[], Driver | None]
    """Whoever drives it at this moment: a driver that broke is replaced."""
    terminal: Callable[[], e.Terminal | None]
    """How it ended."""


class Fold(Protocol):
    """What came of it so far."""

    @property
    def usage(self) -> Usage: ...
    def answer(self) -> Answer: ...


class Work(Protocol):
    """What a caller waits for: a `Call` of a model, or an `AgentRun`."""

    cut: Cut | None
    bytes_out: int
    """Sent to the caller, for the record."""

    @property
    def fold(self) -> Fold: ...
    @property
    def resumable(self) -> bool:
        """The next process goes on with it when this one ends."""
        ...

    def interrupt(self, why: Cut) -> None: ...
    async def answer(self) -> Answer: ...
    async def __aenter__(self) -> object: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool: ...
    def __aiter__(self) -> AsyncIterator[Sequence[RunEvent]]: ...


class AgentRun:
    """A `Work`: `async with run: async for batch in run: …`, in one task.

    Leaving the block early cancels the turn, unless the run is `resumable`: then it goes on without its caller. A turn
    that failed raises its GatewayError at the end of the batches.
    """

    def __init__(self, turn: RunTurn, output: RunOutput, task: asyncio.Future[None], chat_id: str | None) -> None:
        """task: drives the turn; the run is over when it is."""
        self.cut: Cut | None = None
        """Why it was ended from outside."""
        self.chat_id = chat_id
        """Where it runs; None: it leaves nothing behind."""
        self.fold = output.fold
        self._turn = turn
        self._output = output
        self._driving = task
        self._task: asyncio.Task[object] | None = None
        task.add_done_callback(lambda _: output.arrived.set())

    @property
    def resumable(self) -> bool:
        """The next process goes on with it when this one ends."""
        return self._output.resumable

    @property
    def bytes_out(self) -> int:
        call = self._output.call
        return call.bytes_out if call is not None else 0

    @bytes_out.setter
    def bytes_out(self, sent: int) -> None:
        """Of the model call under way, for its record."""
        if self._output.call is not None:
            self._output.call.bytes_out = sent

    def interrupt(self, why: Cut) -> None:
        """End the run now, wherever its task is waiting. The first reason stands; afterwards this does nothing."""
        if self.cut is None and self._task is not None:
            self.cut = why
            self._output.close()
            self._stop()
            self._task.cancel()

    def abandon(self) -> None:
        """Nobody will enter it."""
        self.cut = Cut.CLIENT_GONE
        self._output.close()
        self._stop()

    async def __aenter__(self) -> AgentRun:
        self._task = asyncio.current_task()
        return self

    def __aiter__(self) -> AgentRun:
        return self

    async def answer(self) -> Answer:
        """The whole of it, when it has ended. Raises what iterating raises."""
        async for _ in self:
            pass
        return self.fold.answer()

    async def __anext__(self) -> list[RunEvent]:
        output = self._output
        while not output.batches:
            if self._driving.done():
                self._check_ending()
                raise StopAsyncIteration
            output.arrived.clear()
            await output.arrived.wait()
        return output.take()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        assert task is not None
        self._output.close()
        await self._leave()
        return self.cut is not None and just_ends(self.cut, task, error)

    async def _leave(self) -> None:
        """See the turn to its end, unless it goes on without its caller."""
        if self._driving.done() or self._goes_on:
            return
        self._stop()
        await asyncio.wait([self._driving], timeout=STOP_SECONDS)
        if self._output.sole_reader:
            self._driving.cancel()

    @property
    def _goes_on(self) -> bool:
        return self.resumable and self.cut is not Cut.CLIENT_GONE

    def _stop(self) -> None:
        if self._goes_on:
            return
        driver = self._turn.driver()
        if driver is not None and driver.turn.id == self._turn.id:
            driver.post(e.CancelAsked(turn=self._turn.id, at=driver.now(), reason="client"))
        if self._output.call is not None:
            self._output.call.interrupt(self.cut or Cut.CLIENT_GONE)

    def _check_ending(self) -> None:
        """Raises GatewayError for a turn that did not complete."""
        driving, terminal = self._driving, self._turn.terminal()
        crashed = driving.cancelled() or driving.exception() is not None
        if crashed or terminal is None or self._output.spoiled:
            raise GatewayError(Reason.DRAINING if driving.cancelled() else Reason.INTERNAL)
        if isinstance(terminal, e.TurnFailed):
            raise _failure(terminal, self._output.error)
        if isinstance(terminal, e.TurnCancelled):
            raise GatewayError(Reason.RUN_CANCELLED)


def _failure(terminal: e.TurnFailed, error: GatewayError | None) -> GatewayError:
    """error: with which the last model call failed."""
    if error is not None and error.code.value == terminal.code:
        return error
    if terminal.code == Reason.CHOICE_UNMET:
        return GatewayError(Reason.CHOICE_UNMET, param="tool_choice")
    if terminal.code in _CODES:
        return GatewayError(Reason(terminal.code))
    return GatewayError(Reason.RUN_FAILED, reason=terminal.message or terminal.code)


def _tool_name(event: ModelEvent) -> str | None:
    if isinstance(event, ToolCallStarted):
        return event.name
    return event.call.name if isinstance(event, ToolCallDone) else None


_CALL_EVENTS: Final = (ToolCallStarted, ToolCallDelta, ToolCallDone)
_CODES: Final = frozenset(code.value for code in Code)
