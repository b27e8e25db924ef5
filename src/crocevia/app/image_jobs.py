"""Image jobs in a serving process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crocevia.core.logger import Logger
from crocevia.documents.fetch import Fetcher
from crocevia.doors.atp.resources.images import webhook_data
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.image_generation.generator import ImageGenerator
from crocevia.runtime.image_generation.jobs import ImageJobs
from crocevia.runtime.signing_keys import Signer
from crocevia.storage.database import Database
from crocevia.storage.home import Home


@asynccontextmanager
async def open_image_jobs(
    database: Database,
    home: Home,
    catalogue: CatalogueHolder,
    generator: ImageGenerator,
    signer: Signer,
    fetcher: Fetcher,
    log: Logger,
) -> AsyncIterator[ImageJobs]:
    """Resumes the jobs of an earlier process; on exit running ones are stopped."""
    work = ImageJobs(
        database,
        home.files,
        catalogue,
        generator,
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
