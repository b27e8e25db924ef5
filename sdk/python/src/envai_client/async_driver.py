"""Performs flows on the running event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from copy import copy
from typing import Any, Self, TypeVar

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
from .transport import build_request, check_size, failure, read_head

T = TypeVar("T")


class AsyncDriver:
    """Runs flows over an httpx2 transport. Cancelling the task that runs a flow closes what it holds."""

    def __init__(self, core: Core, transport: httpx2.AsyncBaseTransport) -> None:
        self.core = core
        self.transport = transport
        self._loop: asyncio.AbstractEventLoop | None = None
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._perform: dict[type, Callable[[Any, CancelToken | None], Awaitable[Any]]] = {
            Exchange: self._exchange,
            OpenStream: self._open,
            ReadChunk: lambda effect, cancel: bounded(effect.handle.read(), effect.deadline, cancel),
            CloseStream: lambda effect, _: effect.handle.close(),
            Sleep: self._sleep,
            Blocking: lambda effect, _: asyncio.to_thread(effect.function, *effect.arguments),
            Guarded: self._guarded,
            Invoke: self._invoke,
        }

    def for_core(self, core: Core) -> Self:
        """The same transport and locks for a client with other settings."""
        other = copy(self)
        other.core = core
        return other

    async def run(self, flow: Flow[T], cancel: CancelToken | None = None) -> T:
        """Drive `flow` to its result. With `cancel`, raises CancelledError as soon as it is cancelled."""
        self._loop = asyncio.get_running_loop()
        try:
            effect = next(flow)
            while True:
                try:
                    # A cleanup must go through even after a cancellation.
                    if cancel is not None and cancel.cancelled and type(effect) is not CloseStream:
                        raise CancelledError("cancelled by the caller")
                    value = await self._perform[type(effect)](effect, cancel)
                except BaseException as problem:
                    effect = flow.throw(problem)
                else:
                    effect = flow.send(value)
        except StopIteration as end:
            result: T = end.value
            return result

    def abandon(self, flow: Flow[None]) -> None:
        """Run a cleanup that nobody waits for: the garbage collector may call from anywhere."""
        loop = self._loop
        if loop is not None and loop.is_running():
            loop.call_soon_threadsafe(lambda: keep(loop.create_task(self.run(flow))))

    async def _exchange(self, effect: Exchange, cancel: CancelToken | None) -> tuple[Head, bytes]:
        return await bounded(self._whole(effect.request), effect.deadline, cancel)

    async def _whole(self, request: Request) -> tuple[Head, bytes]:
        response = await self._send(request)
        try:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                check_size(body)
            return read_head(response), bytes(body)
        except httpx2.TransportError as problem:
            raise failure(problem) from None
        finally:
            await response.aclose()

    async def _open(self, effect: OpenStream, cancel: CancelToken | None) -> Head:
        response = await bounded(self._send(effect.request), effect.deadline, cancel)
        return read_head(response, AsyncBody(response))

    async def _send(self, request: Request) -> httpx2.Response:
        try:
            return await self.transport.handle_async_request(build_request(request))
        except httpx2.TransportError as problem:
            raise failure(problem) from None

    async def _sleep(self, effect: Sleep, cancel: CancelToken | None) -> None:
        left = remaining(effect.deadline)
        seconds = effect.seconds if left is None else min(effect.seconds, left)
        await bounded(asyncio.sleep(seconds), None, cancel)

    async def _guarded(self, effect: Guarded, cancel: CancelToken | None) -> Any:
        async with self._locks[effect.name]:
            return await self.run(effect.flow, cancel)

    async def _invoke(self, effect: Invoke, _: CancelToken | None) -> Any:
        if inspect.iscoroutinefunction(effect.handler):
            work = effect.handler(**effect.arguments)
        else:
            work = asyncio.to_thread(effect.handler, **effect.arguments)
        try:
            return await bounded(work, monotonic() + effect.seconds, effect.context.token)
        except RequestTimeoutError:
            effect.context.token.cancel()
            raise TimeoutError from None
        except CancelledError:
            return None


class AsyncWorkers:
    """Flows at work beside a reader, at most `limit` at a time. `on_failure` is called when one of them raises."""

    def __init__(self, driver: AsyncDriver, limit: int, on_failure: Callable[[], object]) -> None:
        self._driver = driver
        self._slots = asyncio.Semaphore(limit)
        self._on_failure = on_failure
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, flow: Flow[None]) -> None:
        self._tasks.append(asyncio.create_task(self._run(flow, self._slots)))

    def start_unlimited(self, flow: Flow[None]) -> None:
        """One that takes no place, such as a delivery that waits for its server. Started by another, or beside it."""
        self._tasks.append(asyncio.create_task(self._run(flow, nullcontext())))

    def raise_failures(self) -> None:
        """Raise what a flow that has ended could not answer for itself."""
        done = [task for task in self._tasks if task.done()]
        self._tasks = [task for task in self._tasks if not task.done()]
        for task in done:
            task.result()

    async def finish(self) -> None:
        """Wait for all of them."""
        while not all(task.done() for task in self._tasks):
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, flow: Flow[None], slot: AbstractAsyncContextManager[None]) -> None:
        try:
            async with slot:
                await self._driver.run(flow)
        except Exception:
            self._on_failure()
            raise


BACKGROUND: set[asyncio.Task[None]] = set()


def keep(task: asyncio.Task[None]) -> None:
    """Hold a task until it is done: the loop itself holds only weakly."""
    BACKGROUND.add(task)
    task.add_done_callback(BACKGROUND.discard)


class AsyncBody:
    """An open response body."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._chunks = response.aiter_bytes()

    async def read(self) -> bytes | None:
        try:
            return await anext(self._chunks, None)
        except httpx2.StreamError:
            return None
        except httpx2.TransportError as problem:
            raise failure(problem) from None

    async def close(self) -> None:
        # The iterator first: left suspended, the garbage collector would close it from outside its task.
        await self._chunks.aclose()
        await self._response.aclose()


async def bounded(work: Awaitable[T], deadline: float | None, cancel: CancelToken | None) -> T:
    """Await `work`, cancelled at the deadline or when `cancel` is."""
    try:
        left = remaining(deadline)
    except RequestTimeoutError:
        if inspect.iscoroutine(work):
            work.close()
        raise
    if cancel is not None:
        work = cancellable(work, cancel)
    if left is None:
        return await work
    try:
        async with asyncio.timeout(left) as scope:
            return await work
    except TimeoutError:
        if not scope.expired():
            raise  # the application's own
        raise RequestTimeoutError("the operation's timeout has passed") from None


async def cancellable(work: Awaitable[T], cancel: CancelToken) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    with cancel.calling(lambda: loop.call_soon_threadsafe(task.cancel)):
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if cancel.cancelled and task.cancelled() and not (current and current.cancelling()):
                raise CancelledError("cancelled by the caller") from None
            task.cancel()
            raise
