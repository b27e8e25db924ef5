"""A run under way, as whoever waits for it sees it: like a call, but of as many model calls as the agent makes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, TypeAlias

import msgspec

from crocevia.core.answers import Answer
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.events import (
    ModelEvent,
    OpaqueBlock,
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
from crocevia.runtime.gateway import Call, Cut
from crocevia.runtime.turns.chat_sessions import now_ms
from crocevia.runtime.turns.driver import Driver

BATCHES: Final = 256  # that may wait for a reader that is slow
LAST_WORDS: Final = 3.0  # seconds for what is stopped


class StepEnded(msgspec.Struct, frozen=True):
    """What the model says from here on is another answer: it went on with the results of the agent's own tools."""


RunEvent: TypeAlias = ModelEvent | StepEnded


class RunFold:
    """Everything heard so far, as one answer. tool_calls: only those that are the caller's to run."""

    def __init__(self) -> None:
        self.texts: list[list[str]] = [[]]
        self.thoughts: list[str] = []
        self.refusal: list[str] = []
        self.calls: list[ToolCall] = []
        self.stop: StopReason | None = None
        self.heard: list[Call] = []
        self.counted: list[Usage] = []

    @property
    def usage(self) -> Usage:
        """Of all calls together; a figure that one of them did not report is unknown."""
        found = [call.fold.usage for call in self.heard] + self.counted
        return sum_of(found)

    def answer(self) -> Answer:
        return Answer(
            text="\n\n".join("".join(step) for step in self.texts if step),
            reasoning="".join(self.thoughts),
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
            self.thoughts.append(event.text)
        elif isinstance(event, RefusalDelta):
            self.refusal.append(event.text)
        elif isinstance(event, ToolCallDone):
            self.calls.append(event.call)
        elif isinstance(event, Stopped):
            self.stop = event.reason
        elif isinstance(event, StepEnded):
            self.texts.append([])


def sum_of(found: Iterable[Usage]) -> Usage:
    """The sum of each figure; None if one of them is not known."""
    every = list(found)

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


class AgentRun:
    """Use it like a `Call`: `async with run: async for batch in run: …`, in one task. It is a `hearing.RunObserver`.

    cut: why it was ended from outside. forbidden: names whose call fails the run. Leaving the block early cancels the
    turn, unless it `resumes`: then somebody goes on with it. A failed turn raises its GatewayError at the end of the
    batches.
    """

    def __init__(
        self, turn_id: str, mine: Iterable[str], forbidden: frozenset[str] = frozenset(), *, alone: bool, resumes: bool
    ) -> None:
        self.fold = RunFold()
        self.cut: Cut | None = None
        self.turn_id = turn_id
        self.terminal: Callable[[], e.Terminal | None] = lambda: None
        self.chat_id: str | None = None
        self.alone = alone
        self.resumes = resumes
        self._mine = frozenset(mine)
        self._forbidden = forbidden
        self._driver: Callable[[], Driver | None] = lambda: None
        self._batches: deque[list[RunEvent]] = deque()
        self._news = asyncio.Event()
        self._capacity = asyncio.Event()
        self._work: asyncio.Future[None] | None = None
        self._task: asyncio.Task[object] | None = None
        self._call: Call | None = None
        self._error: GatewayError | None = None
        self._blocks: list[RunEvent] = []
        self._hidden: set[int] = set()
        self._spoke = False
        self._broken = False
        self._steps = 0

    def driven_by(self, driver: Callable[[], Driver | None], terminal: Callable[[], e.Terminal | None]) -> None:
        """How to find whoever drives the turn at this moment, and how it ended."""
        self._driver, self.terminal = driver, terminal

    def follows(self, work: asyncio.Future[None]) -> None:
        """The task that drives the turn: the run is over when it is."""
        self._work = work
        work.add_done_callback(lambda _: self._news.set())

    @property
    def bytes_out(self) -> int:
        return self._call.bytes_out if self._call is not None else 0

    @bytes_out.setter
    def bytes_out(self, sent: int) -> None:
        """Of the model call under way, for its record."""
        if self._call is not None:
            self._call.bytes_out = sent

    def interrupt(self, why: Cut) -> None:
        """End the run now, wherever its task is waiting. The first reason stands; afterwards this does nothing."""
        if self.cut is not None or self._task is None:
            return
        self.cut = why
        self._stop()
        self._task.cancel()

    def abandon(self) -> None:
        """Nobody will enter it."""
        self.cut = Cut.CLIENT_GONE
        self._stop()

    def _fail(self, code: str, message: str) -> None:
        driver = self._driver()
        if driver is not None:
            driver.tell(e.TurnFailing(turn=self.turn_id, at=now_ms(), code=code, message=message))

    # --- as the turn sees it ---------------------------------------------------------------------------------

    def began(self, call: Call) -> None:
        self._broken = self._broken or self._spoke
        self._call = call
        self.fold.heard.append(call)
        self._blocks, self._hidden, self._spoke = [], set(), False
        if self._steps:
            self._put([StepEnded()])
        self._steps += 1

    async def take(self, batch: list[ModelEvent]) -> None:
        shown: list[RunEvent] = [self._numbered(event) for event in batch if self._shows(event)]
        if any(isinstance(event, Stopped) for event in batch):
            self._spoke = False
            if not self._hidden:
                shown[-1:-1] = self._blocks  # before the end
        else:
            self._spoke = True
        if shown and not self._broken:
            self._put(shown)
        while len(self._batches) > BATCHES and self.cut is None:
            self._capacity.clear()
            await self._capacity.wait()

    def failed(self, error: GatewayError) -> None:
        self._error = error

    def replay(self, steps: Iterable[e.ModelAnswered]) -> None:
        """Hear what the journal has of a run that went on without anybody."""
        for step in steps:
            if self._steps:
                self._put([StepEnded()])
            self._steps += 1
            self.fold.counted.append(step.usage)
            batch: list[RunEvent] = [ReasoningDelta(step.reasoning)] if step.reasoning else []
            batch += [TextDelta(step.text)] if step.text else []
            mine = [call for call in step.calls if call.name in self._mine]
            batch += [ToolCallDone(index, call) for index, call in enumerate(mine)]
            batch.append(Stopped(StopReason(step.stop)))
            self._put(batch)

    def _shows(self, event: ModelEvent) -> bool:
        """Calls of the agent's own tools are nobody else's business, and neither is an answer that holds some."""
        if isinstance(event, OpaqueBlock):
            self._blocks.append(event)
            return False
        name = _name(event)
        if name is not None and name not in self._mine:
            self._hidden.add(event.index)  # type: ignore[union-attr]  # what has a name has an index
            if name in self._forbidden:
                self._fail("choice_unmet", "a tool was called that was not allowed")
        return not (isinstance(event, _CALLS) and event.index in self._hidden)

    def _numbered(self, event: ModelEvent) -> ModelEvent:
        """The caller's calls are counted without the others."""
        if not self._hidden or not isinstance(event, _CALLS):
            return event
        return msgspec.structs.replace(event, index=event.index - sum(one < event.index for one in self._hidden))

    def _put(self, batch: list[RunEvent]) -> None:
        self._batches.append(batch)
        self._news.set()

    # --- as its reader sees it -------------------------------------------------------------------------------

    async def __aenter__(self) -> AgentRun:
        self._task = asyncio.current_task()
        return self

    def __aiter__(self) -> AgentRun:
        return self

    async def answer(self) -> Answer:
        """What comes of it when it has come to its end. Raises what iterating raises."""
        async for _ in self:
            pass
        return self.fold.answer()

    async def __anext__(self) -> list[RunEvent]:
        while not self._batches:
            assert self._work is not None
            if self._work.done():
                self._end()
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        batch = self._batches.popleft()
        self._capacity.set()
        for event in batch:
            self.fold.add(event)
        return batch

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        assert task is not None
        self._capacity.set()
        await self._leave()
        if self.cut is None:
            return False
        task.uncancel()
        if not isinstance(error, asyncio.CancelledError) or task.cancelling():
            return False
        if self.cut is Cut.CLIENT_GONE:
            return True
        raise GatewayError(Reason.DRAINING if self.cut is Cut.DRAINED else Reason.UPSTREAM_TIMEOUT) from None

    async def _leave(self) -> None:
        """See the turn to its end, unless others do."""
        work = self._work
        if work is None or work.done() or (self.resumes and self.cut is not Cut.CLIENT_GONE):
            return
        self._stop()
        await asyncio.wait([work], timeout=LAST_WORDS)
        if self.alone:
            work.cancel()

    def _stop(self) -> None:
        if self.resumes and self.cut is not Cut.CLIENT_GONE:
            return
        driver = self._driver()
        if driver is not None:
            driver.tell(e.CancelAsked(turn=self.turn_id, at=now_ms(), reason="client"))
        if self._call is not None:
            self._call.interrupt(self.cut or Cut.CLIENT_GONE)

    def _end(self) -> None:
        """Raises GatewayError for a turn that did not complete."""
        assert self._work is not None
        crashed = self._work.cancelled() or self._work.exception() is not None
        terminal = self.terminal()
        if crashed or terminal is None or self._broken:
            raise GatewayError(Reason.DRAINING if self._work.cancelled() else Reason.INTERNAL)
        if isinstance(terminal, e.TurnFailed):
            raise self._failure(terminal)
        if isinstance(terminal, e.TurnCancelled):
            raise GatewayError(Reason.RUN_CANCELLED)

    def _failure(self, terminal: e.TurnFailed) -> GatewayError:
        if self._error is not None and self._error.code.value == terminal.code:
            return self._error
        if terminal.code == Reason.CHOICE_UNMET:
            return GatewayError(Reason.CHOICE_UNMET, param="tool_choice")
        if terminal.code in _CODES:
            return GatewayError(Reason(terminal.code))
        return GatewayError(Reason.RUN_FAILED, reason=terminal.message or terminal.code)


def _name(event: ModelEvent) -> str | None:
    if isinstance(event, ToolCallStarted):
        return event.name
    return event.call.name if isinstance(event, ToolCallDone) else None


_CALLS: Final = (ToolCallStarted, ToolCallDelta, ToolCallDone)
_CODES: Final = frozenset(code.value for code in Code)
