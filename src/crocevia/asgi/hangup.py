"""Has the client hung up? It is seen only by whoever listens, after the body is read: these listen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from crocevia.asgi.types import Receive

T = TypeVar("T")


async def gone(receive: Receive) -> None:
    """Return when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


class watching:  # used as `with watching(…)`
    """Call `then` if the client hangs up inside the block; the block itself goes on.

    What it enters with is done as soon as the client has gone. Our own server's `receive` can tell of it (`on_hangup`);
    anybody else's has to be asked, by a task.
    """

    __slots__ = ("_gone", "_receive", "_task", "_then")

    def __init__(self, receive: Receive, then: Callable[[], None] | None = None) -> None:
        self._receive: Any = receive
        self._then = then
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> asyncio.Future[None]:
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if hasattr(self._receive, "on_hangup"):
            self._receive.on_hangup(self._tell)
        else:
            self._task = asyncio.create_task(self._ask())
        return self._gone

    def __exit__(self, *_: object) -> None:
        if self._task is None:
            self._receive.on_hangup(None)
        else:
            self._task.cancel()
        self._gone.cancel()

    async def _ask(self) -> None:
        await gone(self._receive)
        self._tell()

    def _tell(self) -> None:
        if not self._gone.done():
            self._gone.set_result(None)
        if self._then is not None:
            self._then()


async def while_there(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`; None if the client hung up first, and the work was given up. Raises what it raises."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait([working], timeout=0)
        if not working.done():
            with watching(receive) as leaving:
                await first_of(working, leaving)
        return working.result() if working.done() else None
    finally:
        working.cancel()


async def first_of(*tasks: asyncio.Future[Any]) -> None:
    """Return when one of them is done, however; all go on."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def until_first(*work: Coroutine[Any, Any, object]) -> None:
    """Run all of them until one ends, however; the others have been given up when this returns."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await first_of(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
