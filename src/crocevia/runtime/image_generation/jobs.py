"""Image jobs in the background: generation, the webhook that reports the end, expiry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from crocevia.core import json
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.core.images import Picture
from crocevia.core.texts import render
from crocevia.documents.fetch import Fetcher
from crocevia.documents.sniff import sniff
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.delivery import DeliveryAttempt, Signed, WebhookDelivery, WebhookSender
from crocevia.runtime.files.blobs import Blobs
from crocevia.runtime.image_generation.generator import ImageGenerator, PaidImages
from crocevia.runtime.image_generation.inputs import BUDGET, Role, StoredInput, StoredRequest, load_input, read_request
from crocevia.storage import images as rows
from crocevia.storage.database import Database
from crocevia.storage.images import Generation, ImageFile

AT_ONCE: Final = 4
_BACK_OFF: Final = (5, 30, 120, 600, 1800)  # seconds; the URLs in a webhook are valid for two hours

Describe = Callable[[Generation], dict[str, Any]]
"""The data of a generation's webhook."""
Failed = Callable[[Exception], None]
"""Called with an internal error; do not log its text, which may quote an upstream."""


class ImageJobs:
    """One per server. files: the folder of the home. fetcher: for URLs that callers give.

    Without `start` images are generated, but no webhook is sent.
    """

    def __init__(
        self,
        database: Database,
        files: Path,
        catalogue: CatalogueHolder,
        generator: ImageGenerator,
        fetcher: Fetcher,
        sign: Callable[[bytes], Signed],
        *,
        describe: Describe,
        failed: Failed = lambda error: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.generator = generator
        self.fetcher = fetcher
        self._database = database
        self._blobs = Blobs(files)
        self._catalogue = catalogue
        self._describe = describe
        self._failed = failed
        self._clock = clock
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._sender = WebhookSender(self, fetcher.deliver, sign, back_off=_BACK_OFF, clock=clock)

    async def start(self) -> None:
        """Resume the jobs of an earlier process, and send webhooks until `close`."""
        for left in await self._database.read(rows.unfinished):
            if left.status == "accepted":
                self.begin(left)
            else:  # the provider may have generated and charged: never ask twice
                await self._fail(left, GatewayError(Reason.GENERATION_INTERRUPTED))
        self._sender.start()

    async def close(self) -> None:
        """Stop; jobs that have not begun are left to the next process. Idempotent."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._sender.close()

    def begin(self, generation: Generation) -> None:
        """Generate it as soon as a slot is free."""
        task = asyncio.get_running_loop().create_task(self._run(generation), name=f"image {generation.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Return when no generation is running."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def drop_expired(self) -> None:
        """Delete what has expired, and bytes without a row. Raises GatewayError(UNAVAILABLE)."""
        known = {kind: await asyncio.to_thread(self._blobs.names, kind) for kind in ("uploads", "artifacts")}
        await self._database.write(lambda tx: rows.drop_expired(tx, self._clock()))
        kept = {
            "uploads": await self._database.read(rows.kept_uploads),
            "artifacts": await self._database.read(rows.kept_artifacts),
        }
        for kind, names in known.items():
            for name in names:
                # A picture has its bytes before its row: nothing is deleted while a job is running.
                if name not in kept[kind] and not self._tasks:
                    await asyncio.to_thread(self._blobs.remove, kind, name)

    # --- generating ------------------------------------------------------------------------------------------

    async def _run(self, generation: Generation) -> None:
        async with self._slots:
            try:
                done = await self._generate(generation, read_request(generation.request))
                if done is not None:
                    await self._succeed(generation, done)
            except GatewayError as error:
                if error.code is not Code.DRAINING:  # the next process begins it, or says that it was interrupted
                    await self._fail(generation, error)
            except Exception as error:
                self._failed(error)
                await self._fail(generation, GatewayError(Reason.INTERNAL))

    async def _generate(self, generation: Generation, stored: StoredRequest) -> PaidImages | None:
        """None if another process has taken the job."""
        spec = self._catalogue.current.models.get(generation.model)
        if spec is None:
            raise GatewayError(Reason.MODEL_MISSING, model=generation.model)
        loaded = await self._load(stored.inputs)
        self.generator.check(spec, stored.request)
        if not await self._database.write(lambda tx: rows.submitted(tx, generation.id, self._clock())):
            return None
        masks = [picture for role, picture in loaded if role == "mask"]
        inputs = tuple(picture for role, picture in loaded if role != "mask")
        return await self.generator.generate(
            generation.user_id, spec, stored.request, inputs, masks[0] if masks else None
        )

    async def _load(self, inputs: tuple[StoredInput, ...]) -> list[tuple[Role, Picture]]:
        found, size = [], 0
        for item in inputs:
            picture = await load_input(item, self._blobs, self.fetcher)
            size += len(picture.data)
            if size > BUDGET:
                raise GatewayError(Reason.IMAGES_BUDGET)
            found.append((item.role, picture))
        return found

    def _delete_inputs(self, inputs: tuple[StoredInput, ...]) -> None:
        for item in inputs:
            if item.kind == "inputs":
                self._blobs.remove("inputs", item.where)

    async def _succeed(self, generation: Generation, done: PaidImages) -> None:
        files = []
        for picture in done.result.images:
            mime_type = sniff(picture.data) or ""
            if not mime_type.startswith("image/"):
                raise GatewayError(Reason.UPSTREAM_FAILED)
            name = new_id("art")
            await asyncio.to_thread(self._blobs.put, "artifacts", name, picture.data)
            files.append(ImageFile(artifact_id=name, mime_type=mime_type, size=len(picture.data)))
        result = {"warnings": [f"ignored: {key}" for key in done.result.ignored]}
        await self._end(generation, status="succeeded", files=tuple(files), cost_usd=done.cost_usd, result=result)

    async def _fail(self, generation: Generation, error: GatewayError) -> None:
        told: dict[str, Any] = {"code": error.code.value, "message": render(error.message, "en"), "meta": {}}
        await self._end(generation, status="failed", error=told)

    async def _end(self, generation: Generation, **changes: Any) -> None:
        ended = msgspec.structs.replace(generation, completed_at=self._clock(), webhook_event=new_id("evt"), **changes)
        await self._database.write(lambda tx: rows.ended(tx, ended))
        await asyncio.to_thread(self._delete_inputs, read_request(generation.request).inputs)
        self._sender.wake()

    # --- webhooks --------------------------------------------------------------------------------------------

    async def due(self) -> list[WebhookDelivery]:
        """See `delivery.Outbox`."""
        return [self._delivery(row) for row in await self._database.read(rows.due)]

    async def note(self, delivery: WebhookDelivery, attempt: DeliveryAttempt) -> None:
        """See `delivery.Outbox`."""
        done_at = attempt.at if attempt.delivered else None
        await self._database.write(
            lambda tx: rows.attempted(tx, delivery.event, attempt.status, attempt.next_at, done_at)
        )

    async def redeliver(self, event: str) -> bool:
        """Send a webhook once more now, delivered or given up before; False if the id is unknown."""
        found = await self._database.write(lambda tx: rows.tell_again(tx, event, self._clock()))
        self._sender.wake()
        return found

    async def webhooks(self, most: int) -> list[tuple[Generation, bytes]]:
        """The newest webhooks with their bodies (whose URLs are valid for two hours from now)."""
        return [(row, self._webhook_body(row)) for row in await self._database.read(lambda tx: rows.told(tx, most))]

    def _webhook_body(self, row: Generation) -> bytes:
        told = {"id": row.webhook_event, "type": f"image.generation.{row.status}", "data": self._describe(row)}
        return json.encode(told)

    def _delivery(self, row: Generation) -> WebhookDelivery:
        assert row.webhook_event is not None and row.webhook_due_at is not None  # the query selects these
        return WebhookDelivery(
            event=row.webhook_event,
            url=row.webhook_url,
            body=self._webhook_body(row),
            attempts=row.webhook_attempts,
            due_at=row.webhook_due_at,
        )
