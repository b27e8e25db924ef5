"""Periodic cleanup in a serving process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from crocevia.core.errors import GatewayError
from crocevia.core.logger import Logger

EVERY_SECONDS: Final = 600.0

Cleanup = Callable[[], Awaitable[None]]
"""Deletes what has expired of one kind. Raises GatewayError(UNAVAILABLE)."""


@asynccontextmanager
async def periodic_cleanup(
    cleanups: tuple[Cleanup, ...], log: Logger, *, every: float = EVERY_SECONDS
) -> AsyncIterator[None]:
    """Run each cleanup now and every `every` seconds, as long as the block runs."""
    task = asyncio.create_task(_run(cleanups, log, every), name="periodic cleanup")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _run(cleanups: tuple[Cleanup, ...], log: Logger, every: float) -> None:
    while True:
        for cleanup in cleanups:
            try:
                await cleanup()
            except GatewayError:  # the store or a folder is out of reach: try again next time
                continue
            except Exception as error:
                log.error("periodic cleanup failed", error=type(error).__name__)
        await asyncio.sleep(every)
