"""Tells the operator when the store takes no writes, and when it does again: callers only see a 503."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol

from crocevia.core.logger import Logger

_LOOK_SECONDS: Final = 1.0


class Store(Protocol):
    """The part of `storage.database.Database` that is needed here."""

    failing_since: float | None
    failing_because: str


@asynccontextmanager
async def watch_store(store: Store, log: Logger, *, every: float = _LOOK_SECONDS) -> AsyncIterator[None]:
    """Log each failure of the store once, and its end, as long as the block runs. every: seconds."""
    task = asyncio.create_task(_watch(store, log, every))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _watch(store: Store, log: Logger, every: float) -> None:
    told: float | None = None
    while True:
        since = store.failing_since
        if since is not None and told is None:
            log.error("the store takes no writes; calls are refused until it does", reason=store.failing_because)
        elif since is None and told is not None:
            log.info("the store is written again", seconds=round(time.monotonic() - told, 1))
        told = since
        await asyncio.sleep(every)
