"""The door's house with a brush: a scripted image model, real admission and records, and a receiver of webhooks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from crocevia.app.engines import EnginePool
from crocevia.core.catalogue import EngineSpec, ModelSpec, Prices
from crocevia.documents.fetch import Delivery, Fetched, Fetcher, FetchPolicy
from crocevia.doors.atp.resources.images import webhook_data
from crocevia.runtime.control.context import open_control
from crocevia.runtime.gateway import Gateway
from crocevia.runtime.image_generation.generator import ImageGenerator
from crocevia.runtime.image_generation.jobs import ImageJobs
from crocevia.runtime.records import CallRecords
from crocevia.storage import declared, meta
from crocevia.storage.database import Transaction
from tests.doors.atp.house import House, house, site_of

SCRIPT: list[dict[str, Any]] = [
    {"when": {"contains": "never"}, "say": [{"error": "refused"}]},
    {"when": {"contains": "slow"}, "say": [{"delay_ms": 60_000}]},
    {"say": [{"text": "done"}]},
]
ORDER = {"model": "brush", "prompt": "a red square", "webhook_url": "https://hooks.example/images"}


class Post(Fetcher):
    """Resolves every name to one public address, and never goes there."""

    def __init__(self, resolved: tuple[str, ...] = ("93.184.216.34",)) -> None:
        async def resolve(host: str, port: int) -> list[str]:
            return list(resolved)

        super().__init__(resolve=resolve)
        self.sent: list[tuple[str, bytes, dict[str, str]]] = []
        self.answers: list[int] = []
        self.pages: dict[str, bytes] = {}
        self.on_fetch: Callable[[], None] = lambda: None

    async def deliver(self, url: str, body: bytes, headers: Mapping[str, str], policy: FetchPolicy) -> Delivery:
        self.sent.append((url, body, dict(headers)))
        return Delivery(status=self.answers.pop(0) if self.answers else 204, seconds=0.1)

    async def fetch(self, url: str, policy: FetchPolicy) -> Fetched:
        await self.check(url, policy)
        self.on_fetch()
        return Fetched(data=self.pages[url], content_type="", name="")


@dataclass
class Studio:
    place: House
    post: Post
    work: ImageJobs
    gateway: Gateway
    records: CallRecords
    engines: EnginePool = field(repr=False)

    async def finished(self, path: str, wanted: str) -> dict[str, Any]:
        """The generation once it has this status."""
        async with asyncio.timeout(20):
            while True:
                await self.work.settled()
                data: dict[str, Any] = (await self.place.call("GET", path)).data
                if data["status"] == wanted:
                    return data


@asynccontextmanager
async def studio(*, told: bool = False) -> AsyncIterator[Studio]:
    async with house() as place:
        before = place.control

        def declare(tx: Transaction) -> None:
            now = time.time()
            declared.save(tx, EngineSpec(name="easel", kind="scripted", script=SCRIPT), now)
            prices = Prices(input=2, output=8)
            declared.save(tx, ModelSpec(name="brush", engine="easel", upstream="image", prices=prices), now)
            meta.bump_revision(tx)

        await before.database.write(declare)
        await before.catalogue.refresh()
        engines = EnginePool(before.catalogue, before.home.models)
        records, post = CallRecords(before.database), Post()
        gateway = Gateway(before.catalogue, engines.get, records)
        generator = ImageGenerator(gateway, engines.get)
        secret = before.catalogue.current.secret
        work = ImageJobs(
            before.database,
            before.home.files,
            before.catalogue,
            generator,
            post,
            before.signer.sign,
            describe=lambda made: webhook_data(secret, made),
            clock=lambda: place.control.clock(),
        )
        control = open_control(before.database, before.home, before.catalogue, images=work)
        place.control, place.door, place.busy = control, site_of(control), True
        if told:
            await work.start()
        try:
            yield Studio(place, post, work, gateway, records, engines)
        finally:
            await work.close()
            await post.close()
            await engines.close()
            records.flush()


def paint(work: Any, **options: Any) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(40), studio(**options) as place:
            return await work(place)

    return asyncio.run(bounded())
