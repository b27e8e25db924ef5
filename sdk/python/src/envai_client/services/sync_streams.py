"""Event streams and client tools."""

# Generated from the async edition by scripts/generate.py: do not edit.

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from typing import Literal, Protocol, Self

from ..cancel import CancelToken
from ..effects import Flow
from ..errors import CancelledError, EnvaiError, SignatureError, StreamInUseError
from ..events import Event
from ..follow import Follower
from ..sync_driver import SyncDriver, SyncWorkers
from ..tool_calls import ToolCalls
from ..tools import ToolOutcome
from ..turns import TurnFlow, TurnResult

OnViolation = Literal["raise", "skip"]


class Source(Protocol):
    def __iter__(self) -> Iterator[Event]: ...


class EventStream:
    """A chat's events after a cursor. One reader; close it, or use `with`.

    An event counts as delivered when the next one is asked for, when `acknowledge` is called, or when a `with` block
    ends without an exception. `last_seq` and `epoch` are what to pass to continue later.
    """

    def __init__(self, driver: SyncDriver, follower: Follower, cancel: CancelToken | None = None) -> None:
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

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        if not self._reading.acquire(blocking=False):
            raise StreamInUseError("a stream has one reader")
        try:
            event = self._step()
        except EnvaiError as problem:
            self._locate(problem)
            raise
        finally:
            self._reading.release()
        if event is None:
            raise StopIteration
        return event

    def _locate(self, problem: EnvaiError) -> None:
        problem.locate(chat_id=self.chat_id, turn_id=None, last_seq=self.last_seq)

    def _step(self) -> Event | None:
        if self._follower.closed:
            return None
        return self._follower.poll() or self._driver.run(self._follower.next(), self._cancel)

    def close(self) -> None:
        """Release the connection now."""
        self._driver.run(self._follower.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.acknowledge()
        self.close()

    def __del__(self) -> None:
        if not self._follower.closed:
            self._driver.abandon(self._follower.close())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} chat={self.chat_id} last_seq={self.last_seq}>"


class TurnStream(EventStream):
    """The events of one turn, from its message to its terminal event; then `result()`."""

    def __init__(self, driver: SyncDriver, turn: TurnFlow, cancel: CancelToken | None = None) -> None:
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

    def start(self) -> str:
        """Attach and send the message now -> the turn's id. Iterating does it too."""
        known = self.turn_id
        if known is not None:
            return known
        try:
            return self._driver.run(self._turn.start(), self._cancel)
        except EnvaiError as problem:
            self._locate(problem)
            raise

    def _locate(self, problem: EnvaiError) -> None:
        problem.locate(chat_id=self.chat_id, turn_id=self.turn_id, last_seq=self.last_seq)

    def result(self, tool_outcomes: tuple[ToolOutcome, ...] = ()) -> TurnResult:
        """How the turn ended. Raises ProtocolError before its terminal event."""
        return self._turn.result(tool_outcomes)

    def _step(self) -> Event | None:
        if self._follower.closed:
            return None
        return self._turn.poll() or self._driver.run(self._turn.next(), self._cancel)


class ToolRun:
    """The events of a stream, its client tools answered beside them. Iterate; close it to stop early.

    `outcomes` says what became of each call, complete once the iteration has ended.
    """

    def __init__(
        self,
        driver: SyncDriver,
        calls: ToolCalls,
        stream: Source,
        max_concurrency: int,
        on_violation: OnViolation,
        cancel: CancelToken | None,
        wake: CancelToken,
    ) -> None:
        self._driver = driver
        self._calls = calls
        self._skip = on_violation == "skip"
        # A call that fails wakes the reader, which raises it now and not with the next event.
        self._workers = SyncWorkers(driver, max_concurrency, wake.cancel)
        calls.spawn = self._workers.start_unlimited
        self._wake = wake
        self._events = self._run(stream, cancel)

    @property
    def outcomes(self) -> tuple[ToolOutcome, ...]:
        """What became of the calls that have ended so far, in that order."""
        return tuple(self._calls.outcomes)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        return self._events.__next__()

    def close(self) -> None:
        """Stop the handlers and leave what is undelivered in the ledger."""
        self._events.close()

    def _run(self, stream: Source, cancel: CancelToken | None) -> Generator[Event, None]:
        try:
            with cancel.calling(self._wake.cancel) if cancel is not None else nullcontext():
                for event in stream:
                    for flow in self._admit(event, cancel):
                        self._workers.start(flow)
                    yield event
                    self._workers.raise_failures()
        except CancelledError:
            self._finish()
            self._workers.raise_failures()  # a call that failed is why the reader was woken
            raise
        finally:
            self._finish()
        self._workers.raise_failures()

    def _finish(self) -> None:
        self._calls.close()
        self._workers.finish()

    def _admit(self, event: Event, cancel: CancelToken | None) -> list[Flow[None]]:
        try:
            return self._driver.run(self._calls.admit(event), cancel)
        except SignatureError:
            if not self._skip:
                raise
            self._driver.core.logger.warning("a client-tool request was refused: its signature does not verify")
            return []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self._calls.outcomes)} calls ended>"
