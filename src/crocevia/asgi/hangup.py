"""Has the client hung up? It is seen only by whoever listens, after the body is read: these listen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from crocevia.asgi.body import ClientGone
from crocevia.asgi.types import Receive

T = TypeVar("T")


async def wait_disconnect(receive: Receive) -> None:
    """Return when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


class on_disconnect:  # noqa: N801  # used as `with on_disconnect(…)`, spelled as contextlib spells its own
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
        await wait_disconnect(self._receive)
        self._tell()

    def _tell(self) -> None:
        if not self._gone.done():
            self._gone.set_result(None)
        if self._then is not None:
            self._then()


async def run_until_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. Raises ClientGone if the client hung up first, and the work was given up."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait([working], timeout=0)
        if not working.done():
            with on_disconnect(receive) as leaving:
                await wait_first(working, leaving)
        if working.done():
            return working.result()
        raise ClientGone
    finally:
        working.cancel()


async def wait_first(*tasks: asyncio.Future[Any]) -> None:
    """Return when one of them is done, however; all go on."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def race(*work: Coroutine[Any, Any, object]) -> None:
    """Run all of them until one ends, however; the others have been given up when this returns."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await wait_first(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
