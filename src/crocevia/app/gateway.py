"""The gateway of a serving home, with what earlier processes knew."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from crocevia.config import Settings
from crocevia.core.logger import Logger
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.gateway import CallLimits, EngineSource, Gateway, Recorder
from crocevia.runtime.intake import Intake
from crocevia.runtime.money.spend import Spend
from crocevia.runtime.reasoning.block_digests import CAPACITY, BlockDigests
from crocevia.runtime.reasoning.block_watch import BlockWatch
from crocevia.storage import provider_blocks, records
from crocevia.storage.database import Database

HOUR: Final = 3600


@asynccontextmanager
async def open_gateway(
    settings: Settings,
    database: Database,
    catalogue: CatalogueHolder,
    engines: EngineSource,
    queue: Recorder,
    spend: Spend,
    intake: Intake,
    log: Logger,
) -> AsyncIterator[Gateway]:
    """For a home whose catalogue is loaded. What an earlier process left open is settled before this yields."""
    gateway = Gateway(
        catalogue,
        engines,
        queue,
        limits=CallLimits(progress=settings.calls.progress_seconds, overall=settings.calls.overall_seconds),
        spend=spend,
        memory=await _memory(database, catalogue.current.secret),
        intake=intake,
        on_round=BlockWatch(database, await database.read(provider_blocks.apps_without_blocks)),
    )
    await _remember(database, gateway, log)
    yield gateway


async def _memory(database: Database, secret: bytes) -> BlockDigests:
    """The answers with reasoning that earlier processes gave."""
    memory = BlockDigests(secret)
    memory.recall(await database.read(lambda tx: provider_blocks.noted_digests(tx, CAPACITY)))
    return memory


async def _remember(database: Database, gateway: Gateway, log: Logger) -> None:
    """Settle what an earlier process left open, and count the calls of its last hour."""
    now = time.time()
    interrupted = await database.write(lambda tx: records.settle_interrupted(tx, now))
    if interrupted:
        log.warning("calls of an earlier run were interrupted", count=interrupted)
    for row in await database.read(lambda tx: records.call_counts(tx, now - HOUR - 1)):
        gateway.admission.remember(row.project, min(row.second + 1.0, now), row.calls)  # at the latest
