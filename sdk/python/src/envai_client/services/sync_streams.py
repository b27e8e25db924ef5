"""Event streams and client tools for sync programs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Literal, Protocol, Self

from ..cancel import CancelToken
from ..errors import CancelledError, SignatureError, StreamInUseError
from ..events import Event
from ..follow import Follower
from ..sync_driver import SyncDriver
from ..tools import Call, ToolDesk
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
        finally:
            self._reading.release()
        if event is None:
            raise StopIteration
        return event

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
            self.close()

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
        return known if known is not None else self._driver.run(self._turn.start(), self._cancel)

    def result(self) -> TurnResult:
        """How the turn ended. Raises ProtocolError before its terminal event."""
        return self._turn.result()

    def _step(self) -> Event | None:
        if self._follower.closed:
            return None
        return self._turn.poll() or self._driver.run(self._turn.next(), self._cancel)


class ToolRunner:
    """Runs the client tools a stream asks for, at most `max_concurrency` at a time, while passing its events on."""

    def __init__(self, driver: SyncDriver, desk: ToolDesk, max_concurrency: int, on_violation: OnViolation) -> None:
        self._driver = driver
        self._desk = desk
        self._max = max_concurrency
        self._skip = on_violation == "skip"
        self._running: list[Future[None]] = []
        self.wake = CancelToken()

    def run(self, stream: Source, cancel: CancelToken | None) -> Iterator[Event]:
        pool = ThreadPoolExecutor(self._max, thread_name_prefix="envai-tool")
        try:
            with cancel.calling(self.wake.cancel) if cancel is not None else nullcontext():
                for event in stream:
                    call = self._admit(event, cancel)
                    if call is not None:
                        self._running.append(pool.submit(self._serve, call))
                    yield event
                    self._collect()
        except CancelledError:
            self._finish(pool)
            self._collect()  # a call that failed is why the reader was woken
            raise
        finally:
            self._finish(pool)
        self._collect()

    def _finish(self, pool: ThreadPoolExecutor) -> None:
        self._desk.cancel()
        pool.shutdown(wait=True)

    def _serve(self, call: Call) -> None:
        try:
            self._driver.run(self._desk.serve(call))
        except BaseException:
            self.wake.cancel()  # the reader raises it now, not with the next event
            raise

    def _admit(self, event: Event, cancel: CancelToken | None) -> Call | None:
        try:
            return self._driver.run(self._desk.admit(event), cancel)
        except SignatureError:
            if not self._skip:
                raise
            self._driver.core.logger.warning("a client-tool request was refused: its signature does not verify")
            return None

    def _collect(self) -> None:
        """Raise what a call could not answer for itself."""
        done = [future for future in self._running if future.done()]
        self._running = [future for future in self._running if not future.done()]
        for future in done:
            future.result()
