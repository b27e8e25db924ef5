"""The work on orders of pictures in a serving process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from crocevia.documents.fetch import Fetcher
from crocevia.doors.atp.resources.images import webhook_data
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.painting.provider import Painting
from crocevia.runtime.painting.work import ImageWork
from crocevia.runtime.signing_keys import Signer
from crocevia.storage.database import Database
from crocevia.storage.home import Home


@asynccontextmanager
async def open_painting(
    database: Database, home: Home, catalogue: CatalogueHolder, painting: Painting, signer: Signer, log: Any
) -> AsyncIterator[ImageWork]:
    """What an earlier process left is gone on with; leaving stops what runs."""
    fetcher = Fetcher(concurrency=8)
    work = ImageWork(
        database,
        home.files,
        catalogue,
        painting,
        fetcher,
        signer.sign,
        describe=lambda made: webhook_data(catalogue.current.secret, made),
        failed=lambda error: log.error("a generation met a fault", error=type(error).__name__),
    )
    try:
        await work.start()
        yield work
    finally:
        await work.close()
        await fetcher.close()
