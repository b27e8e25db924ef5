"""Performs flows in the calling thread."""

from __future__ import annotations

import contextvars
import inspect
import queue
import socket
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from copy import copy
from time import sleep
from typing import Any, Generic, Self, TypeVar

import httpx2

from .cancel import CancelToken
from .clock import monotonic
from .core import Core, remaining
from .effects import (
    Blocking,
    CloseStream,
    Exchange,
    Flow,
    Guarded,
    Head,
    Invoke,
    OpenStream,
    ReadChunk,
    Request,
    Sleep,
)
from .errors import CancelledError, RequestTimeoutError
from .transport import build_request, failure, limit_body, read_head

T = TypeVar("T")


class SyncDriver:
    """Runs flows over an httpx2 transport. Safe to use from several threads; each flow stays in one."""

    def __init__(self, core: Core, transport: httpx2.BaseTransport) -> None:
        self.core = core
        self.transport = transport
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._perform: dict[type, Callable[[Any, CancelToken | None], Any]] = {
            Exchange: self._exchange,
            OpenStream: self._open,
            ReadChunk: lambda effect, cancel: effect.handle.read(effect.deadline, cancel),
            CloseStream: lambda effect, _: effect.handle.close(),
            Sleep: self._sleep,
            Blocking: lambda effect, _: effect.function(*effect.arguments),
            Guarded: self._guarded,
            Invoke: self._invoke,
        }

    def for_core(self, core: Core) -> Self:
        """The same transport and locks for a client with other settings."""
        other = copy(self)
        other.core = core
        return other

    def run(self, flow: Flow[T], cancel: CancelToken | None = None) -> T:
        """Drive `flow` to its result. With `cancel`, raises CancelledError as soon as it is cancelled."""
        try:
            effect = next(flow)
            while True:
                try:
                    # A cleanup must go through even after a cancellation.
                    if cancel is not None and cancel.cancelled and type(effect) is not CloseStream:
                        raise CancelledError("cancelled by the caller")
                    value = self._perform[type(effect)](effect, cancel)
                except BaseException as problem:
                    effect = flow.throw(problem)
                else:
                    effect = flow.send(value)
        except StopIteration as end:
            result: T = end.value
            return result

    def abandon(self, flow: Flow[None]) -> None:
        """Run a cleanup that nobody waits for."""
        self.run(flow)

    def _exchange(self, effect: Exchange, cancel: CancelToken | None) -> tuple[Head, bytes]:
        def work() -> tuple[Head, bytes]:
            response = self._send(effect.request)
            try:
                return read_head(response), limit_body(response.iter_bytes())
            except httpx2.TransportError as problem:
                raise failure(problem) from None
            finally:
                response.close()

        return bounded(work, effect.deadline, cancel)

    def _open(self, effect: OpenStream, cancel: CancelToken | None) -> Head:
        response = bounded(
            lambda: self._send(effect.request), effect.deadline, cancel, discard=lambda late: late.close()
        )
        return read_head(response, Body(response))

    def _send(self, request: Request) -> httpx2.Response:
        try:
            return self.transport.handle_request(build_request(request))
        except httpx2.TransportError as problem:
            raise failure(problem) from None

    def _sleep(self, effect: Sleep, cancel: CancelToken | None) -> None:
        left = remaining(effect.deadline)
        seconds = effect.seconds if left is None else min(effect.seconds, left)
        if cancel is None:
            sleep(seconds)
        elif cancel.wait(seconds):
            raise CancelledError("cancelled by the caller")

    def _guarded(self, effect: Guarded, cancel: CancelToken | None) -> Any:
        with self._locks[effect.name]:
            return self.run(effect.flow, cancel)

    def _invoke(self, effect: Invoke, _: CancelToken | None) -> Any:
        def work() -> Any:
            value = effect.handler(**effect.arguments)
            if not inspect.iscoroutine(value):
                return value
            import asyncio  # sync programs rarely have async handlers

            return asyncio.run(value)

        try:
            return bounded(work, monotonic() + effect.seconds, effect.context.token)
        except RequestTimeoutError:
            effect.context.token.cancel()
            raise TimeoutError from None
        except CancelledError:
            return None


UNLIMITED = 1000  # threads are made as they are needed


class SyncWorkers:
    """Flows at work beside a reader, at most `limit` at a time. `on_failure` is called when one of them raises."""

    def __init__(self, driver: SyncDriver, limit: int, on_failure: Callable[[], object]) -> None:
        self._driver = driver
        self._pool = ThreadPoolExecutor(limit, thread_name_prefix="envai-tool")
        self._unlimited = ThreadPoolExecutor(UNLIMITED, thread_name_prefix="envai-delivery")
        self._on_failure = on_failure
        self._futures: list[Future[None]] = []

    def start(self, flow: Flow[None]) -> None:
        self._futures.append(self._pool.submit(self._run, flow))

    def start_unlimited(self, flow: Flow[None]) -> None:
        """One that takes no place, such as a delivery that waits for its server. Started by another, or beside it."""
        self._futures.append(self._unlimited.submit(self._run, flow))

    def raise_failures(self) -> None:
        """Raise what a flow that has ended could not answer for itself."""
        done = [future for future in self._futures if future.done()]
        self._futures = [future for future in self._futures if not future.done()]
        for future in done:
            future.result()

    def finish(self) -> None:
        """Wait for all of them."""
        self._pool.shutdown(wait=True)
        self._unlimited.shutdown(wait=True)

    def _run(self, flow: Flow[None]) -> None:
        try:
            self._driver.run(flow)
        except BaseException:
            self._on_failure()
            raise


class Body:
    """An open response body, read by one thread at a time.

    Where a read must end early (a deadline, a token), a pump thread reads ahead a little and the caller waits on it:
    closing shuts the socket down so that the pump never outlives the stream.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._chunks = response.iter_bytes()
        self._queue: queue.Queue[Any] | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def read(self, deadline: float | None, cancel: CancelToken | None) -> bytes | None:
        if self._queue is None and deadline is None and cancel is None:
            return self._next()
        if self._queue is None:
            self._queue = queue.Queue(maxsize=16)
            self._thread = threading.Thread(target=self._pump, args=(self._queue,), daemon=True)
            self._thread.start()
        return self._wait(self._queue, deadline, cancel)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._thread is None:
            self._response.close()
            return
        stream = self._response.extensions.get("network_stream")
        sock = stream.get_extra_info("socket") if stream is not None else None
        if sock is not None:
            with suppress(OSError):  # already gone
                sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(1.0)

    def _next(self) -> bytes | None:
        try:
            return next(self._chunks, None)
        except httpx2.StreamError:
            return None
        except httpx2.TransportError as problem:
            raise failure(problem) from None

    def _pump(self, out: queue.Queue[Any]) -> None:
        try:
            while not self._closed:
                try:
                    item: Any = self._next()
                except Exception as problem:  # handed to the reader
                    item = problem
                while not self._closed:
                    try:
                        out.put(item, timeout=0.1)
                        break
                    except queue.Full:
                        continue
                if not isinstance(item, bytes):
                    return
        finally:
            self._response.close()

    def _wait(self, source: queue.Queue[Any], deadline: float | None, cancel: CancelToken | None) -> bytes | None:
        def wake() -> None:
            with suppress(queue.Full):  # the reader is not waiting then
                source.put_nowait(CANCELLED)

        with cancel.calling(wake) if cancel is not None else nullcontext():
            try:
                item = source.get(timeout=remaining(deadline))
            except queue.Empty:
                raise RequestTimeoutError("the operation's timeout has passed") from None
        if item is CANCELLED:
            raise CancelledError("cancelled by the caller")
        if isinstance(item, Exception):
            raise item
        result: bytes | None = item
        return result


CANCELLED = object()


class Handoff(Generic[T]):
    """A result on its way from a worker thread, unless the caller stops waiting first."""

    def __init__(self, discard: Callable[[T], None] | None) -> None:
        self._discard = discard
        self._box: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._abandoned = False

    def work(self, function: Callable[[], T]) -> None:
        """In the worker: run and hand over, or drop what nobody waits for any more."""
        outcome: tuple[str, Any]
        try:
            outcome = ("value", function())
        except BaseException as problem:  # raised again in the caller
            outcome = ("error", problem)
        with self._lock:
            if not self._abandoned:
                self._box.put(outcome)
                return
        self._drop(outcome)

    def cancel(self) -> None:
        self._box.put(("cancelled", None))

    def wait(self, seconds: float | None) -> T:
        """In the caller: the result, or the error that fits how the wait ended."""
        try:
            kind, value = self._box.get(timeout=seconds)
        except queue.Empty:
            self._abandon()
            raise RequestTimeoutError("the operation's timeout has passed") from None
        if kind == "cancelled":
            self._abandon()
            raise CancelledError("cancelled by the caller")
        if kind == "error":
            raise value
        result: T = value
        return result

    def _abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            late = None if self._box.empty() else self._box.get()
        if late is not None:
            self._drop(late)

    def _drop(self, outcome: tuple[str, Any]) -> None:
        if outcome[0] == "value" and self._discard is not None:
            self._discard(outcome[1])


def bounded(
    work: Callable[[], T],
    deadline: float | None,
    cancel: CancelToken | None,
    discard: Callable[[T], None] | None = None,
) -> T:
    """`work()`, given up at the deadline or on cancellation: it then ends on its own and `discard` gets its result."""
    if deadline is None and cancel is None:
        return work()
    left = remaining(deadline)
    handoff = Handoff(discard)
    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(handoff.work, work), daemon=True).start()
    with cancel.calling(handoff.cancel) if cancel is not None else nullcontext():
        return handoff.wait(left)
