"""Run a coroutine in a test with a bounded wait."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T], timeout: float = 10) -> T:
    """The result of `work`, or TimeoutError after `timeout` seconds."""

    async def bounded() -> T:
        async with asyncio.timeout(timeout):
            return await work

    return asyncio.run(bounded())
