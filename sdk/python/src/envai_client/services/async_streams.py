"""Event streams and client tools. The sync edition is made from this file: scripts/generate.py."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import nullcontext
from typing import Literal, Protocol, Self

from ..async_driver import AsyncDriver, AsyncWorkers
from ..cancel import CancelToken
from ..effects import Flow
from ..errors import CancelledError, EnvaiError, SignatureError, StreamInUseError
from ..events import Event
from ..follow import Follower
from ..tool_calls import ToolCalls
from ..tools import ToolOutcome
from ..turns import TurnFlow, TurnResult

OnViolation = Literal["raise", "skip"]


class AsyncSource(Protocol):
    def __aiter__(self) -> AsyncIterator[Event]: ...


class AsyncEventStream:
    """A chat's events after a cursor. One reader; close it, or use `with`.

    An event counts as delivered when the next one is asked for, when `acknowledge` is called, or when a `with` block
    ends without an exception. `last_seq` and `epoch` are what to pass to continue later.
    """

    def __init__(self, driver: AsyncDriver, follower: Follower, cancel: CancelToken | None = None) -> None:
        self._driver = driver
        self._follower = follower
        self._cancel = cancel
        self._reading = threading.Lock()

    @property
    def chat_id(self) -> str:
        return self._follower.chat_id

    @property
    def last_seq(self) -> int:
        return self._follower.cursor.last_seq

    @property
    def epoch(self) -> str | None:
        return self._follower.cursor.epoch

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and taken up again."""
        return self._follower.reconnects

    @property
    def restarts(self) -> int:
        """How often the policy `on_expired="restart"` began again at zero."""
        return self._follower.restarts

    def is_live(self) -> bool:
        """Whether this connection's replay is over: its first ping has come."""
        return self._follower.cursor.live

    def bound(self, deadline: float | None, cancel: CancelToken) -> CancelToken | None:
        """Tighten the deadline and obey `cancel`, for a helper that takes over the reading -> the token until now."""
        known = self._follower.deadline
        self._follower.deadline = min((d for d in (deadline, known) if d is not None), default=None)
        before, self._cancel = self._cancel, cancel
        return before

    def acknowledge(self) -> None:
        """The event in hand has been dealt with: `last_seq` includes it."""
        self._follower.settle()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        if not self._reading.acquire(blocking=False):
            raise StreamInUseError("a stream has one reader")
        try:
            event = await self._step()
        except EnvaiError as problem:
            self._locate(problem)
            raise
        finally:
            self._reading.release()
        if event is None:
            raise StopAsyncIteration
        return event

    def _locate(self, problem: EnvaiError) -> None:
        problem.locate(chat_id=self.chat_id, turn_id=None, last_seq=self.last_seq)

    async def _step(self) -> Event | None:
        if self._follower.closed:
            return None
        return self._follower.poll() or await self._driver.run(self._follower.next(), self._cancel)

    async def close(self) -> None:
        """Release the connection now."""
        await self._driver.run(self._follower.close())

    aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.acknowledge()
        await self.close()

    def __del__(self) -> None:
        if not self._follower.closed:
            self._driver.abandon(self._follower.close())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} chat={self.chat_id} last_seq={self.last_seq}>"


class AsyncTurnStream(AsyncEventStream):
    """The events of one turn, from its message to its terminal event; then `result()`."""

    def __init__(self, driver: AsyncDriver, turn: TurnFlow, cancel: CancelToken | None = None) -> None:
        super().__init__(driver, turn.follower, cancel)
        self._turn = turn

    @property
    def turn_id(self) -> str | None:
        """None until the message was accepted."""
        return self._turn.turn.turn_id if self._turn.turn else None

    @property
    def text(self) -> str:
        """The orchestrator's text so far."""
        return self._turn.turn.text if self._turn.turn else ""

    async def start(self) -> str:
        """Attach and send the message now -> the turn's id. Iterating does it too."""
        known = self.turn_id
        if known is not None:
            return known
        try:
            return await self._driver.run(self._turn.start(), self._cancel)
        except EnvaiError as problem:
            self._locate(problem)
            raise

    def _locate(self, problem: EnvaiError) -> None:
        problem.locate(chat_id=self.chat_id, turn_id=self.turn_id, last_seq=self.last_seq)

    def result(self, tool_outcomes: tuple[ToolOutcome, ...] = ()) -> TurnResult:
        """How the turn ended. Raises ProtocolError before its terminal event."""
        return self._turn.result(tool_outcomes)

    async def _step(self) -> Event | None:
        if self._follower.closed:
            return None
        return self._turn.poll() or await self._driver.run(self._turn.next(), self._cancel)


class AsyncToolRun:
    """The events of a stream, its client tools answered beside them. Iterate; close it to stop early.

    `outcomes` says what became of each call, complete once the iteration has ended.
    """

    def __init__(
        self,
        driver: AsyncDriver,
        calls: ToolCalls,
        stream: AsyncSource,
        max_concurrency: int,
        on_violation: OnViolation,
        cancel: CancelToken | None,
        wake: CancelToken,
    ) -> None:
        self._driver = driver
        self._calls = calls
        self._skip = on_violation == "skip"
        # A call that fails wakes the reader, which raises it now and not with the next event.
        self._workers = AsyncWorkers(driver, max_concurrency, wake.cancel)
        calls.spawn = self._workers.start_unlimited
        self._wake = wake
        self._events = self._run(stream, cancel)

    @property
    def outcomes(self) -> tuple[ToolOutcome, ...]:
        """What became of the calls that have ended so far, in that order."""
        return tuple(self._calls.outcomes)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        return await self._events.__anext__()

    async def close(self) -> None:
        """Stop the handlers and leave what is undelivered in the ledger."""
        await self._events.aclose()

    aclose = close

    async def _run(self, stream: AsyncSource, cancel: CancelToken | None) -> AsyncGenerator[Event, None]:
        try:
            with cancel.calling(self._wake.cancel) if cancel is not None else nullcontext():
                async for event in stream:
                    for flow in await self._admit(event, cancel):
                        self._workers.start(flow)
                    yield event
                    self._workers.raise_failures()
        except CancelledError:
            await self._finish()
            self._workers.raise_failures()  # a call that failed is why the reader was woken
            raise
        finally:
            await self._finish()
        self._workers.raise_failures()

    async def _finish(self) -> None:
        self._calls.close()
        await self._workers.finish()

    async def _admit(self, event: Event, cancel: CancelToken | None) -> list[Flow[None]]:
        try:
            return await self._driver.run(self._calls.admit(event), cancel)
        except SignatureError:
            if not self._skip:
                raise
            self._driver.core.logger.warning("a client-tool request was refused: its signature does not verify")
            return []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self._calls.outcomes)} calls ended>"
