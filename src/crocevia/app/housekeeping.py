"""What a serving process puts away by and by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from crocevia.core.errors import GatewayError

EVERY_SECONDS: Final = 600.0

Sweep = Callable[[], Awaitable[None]]
"""Forgets what expired of one kind. Raises GatewayError(UNAVAILABLE)."""


@asynccontextmanager
async def keep_house(sweeps: tuple[Sweep, ...], log: Any, *, every: float = EVERY_SECONDS) -> AsyncIterator[None]:
    """Sweep now and every so often, as long as the block runs. every: seconds."""
    task = asyncio.create_task(_sweep(sweeps, log, every), name="housekeeping")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _sweep(sweeps: tuple[Sweep, ...], log: Any, every: float) -> None:
    while True:
        for sweep in sweeps:
            try:
                await sweep()
            except GatewayError:  # the store or a folder is out of reach: the next round brings the next chance
                continue
            except Exception as error:
                log.error("housekeeping met a fault", error=type(error).__name__)
        await asyncio.sleep(every)
