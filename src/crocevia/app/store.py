"""Tells the operator when the store takes no writes or is late with them, and when it is well again."""

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


class Records(Protocol):
    """The part of `runtime.records.CallRecords` that is needed here."""

    late: int


@asynccontextmanager
async def watch_store(
    store: Store, records: Records, log: Logger, *, every: float = _LOOK_SECONDS
) -> AsyncIterator[None]:
    """Log each failure of the store once, its end, and calls that did not wait for it, as long as the block runs.

    every: seconds.
    """
    task = asyncio.create_task(_watch(store, records, log, every))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _watch(store: Store, records: Records, log: Logger, every: float) -> None:
    told: float | None = None
    late = 0
    while True:
        if records.late != late:
            log.warning(
                "the store is busy; calls without a budget go on, and are recorded late", calls=records.late - late
            )
            late = records.late
        since = store.failing_since
        if since is not None and told is None:
            log.error("the store takes no writes; calls are refused until it does", reason=store.failing_because)
        elif since is None and told is not None:
            log.info("the store is written again", seconds=round(time.monotonic() - told, 1))
        told = since
        await asyncio.sleep(every)
