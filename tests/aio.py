"""Run a coroutine in a test with a bounded wait."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

try:
    import uvloop

    _loop = uvloop.new_event_loop  # what the server runs on
except ImportError:  # no uvloop for this platform: the server does without it too
    _loop = asyncio.new_event_loop

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T], timeout: float = 10) -> T:
    """The result of `work`, or TimeoutError after `timeout` seconds."""

    async def bounded() -> T:
        async with asyncio.timeout(timeout):
            return await work

    with asyncio.Runner(loop_factory=_loop) as runner:
        return runner.run(bounded())
