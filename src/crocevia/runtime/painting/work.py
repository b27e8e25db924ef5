"""The work behind orders of pictures, which nobody waits for: painting, telling by webhook, forgetting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from crocevia.core import json
from crocevia.core.errors import Code, GatewayError, say
from crocevia.core.ids import new_id
from crocevia.core.images import Picture
from crocevia.core.texts import render
from crocevia.documents.fetch import Fetcher
from crocevia.documents.sniff import sniff
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.delivery import Attempt, Courier, Letter, Signed
from crocevia.runtime.files.blobs import Blobs
from crocevia.runtime.painting.inputs import BUDGET, Kept, Request, Role, described, load
from crocevia.runtime.painting.provider import Done, Painting
from crocevia.storage import images as rows
from crocevia.storage.database import Database
from crocevia.storage.images import Artifact, Generation

AT_ONCE: Final = 4
_BACK_OFF: Final = (5, 30, 120, 600, 1800)  # seconds; the addresses in a webhook are good for two hours

Describe = Callable[[Generation], dict[str, Any]]
"""What a webhook says of a generation."""
Failed = Callable[[Exception], None]
"""Told of what should not have happened; the exception's text may be anybody's."""


class ImageWork:
    """One per server. files: the folder of the home. fetcher: for addresses that callers give.

    Without `start` orders are painted, but nobody is told.
    """

    def __init__(
        self,
        database: Database,
        files: Path,
        catalogue: CatalogueHolder,
        painting: Painting,
        fetcher: Fetcher,
        sign: Callable[[bytes], Signed],
        *,
        describe: Describe,
        failed: Failed = lambda error: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.painting = painting
        self.fetcher = fetcher
        self._database = database
        self._blobs = Blobs(files)
        self._catalogue = catalogue
        self._describe = describe
        self._failed = failed
        self._clock = clock
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._courier = Courier(self, fetcher.deliver, sign, back_off=_BACK_OFF, clock=clock)

    async def start(self) -> None:
        """Go on with what an earlier process left, and tell by webhook until `close`."""
        for left in await self._database.read(rows.unfinished):
            if left.status == "accepted":
                self.begin(left)
            else:  # it may have been painted and paid: it is not asked for twice
                await self._fail(left, GatewayError(Code.UNAVAILABLE, say("generation_interrupted")))
        self._courier.start()

    async def close(self) -> None:
        """Stop; what was not begun is painted by the next process. Idempotent."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._courier.close()

    def begin(self, generation: Generation) -> None:
        """Paint it when its turn comes."""
        task = asyncio.get_running_loop().create_task(self._run(generation), name=f"paint {generation.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Return when nothing is being painted."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def sweep(self) -> None:
        """Forget what expired, and bytes without a row. Raises GatewayError(UNAVAILABLE)."""
        known = {kind: await asyncio.to_thread(self._blobs.names, kind) for kind in ("uploads", "artifacts")}
        await self._database.write(lambda tx: rows.drop_expired(tx, self._clock()))
        kept = {
            "uploads": await self._database.read(rows.kept_uploads),
            "artifacts": await self._database.read(rows.kept_artifacts),
        }
        for kind, names in known.items():
            for name in names:
                # A picture has its bytes before its row: nothing is swept while one is on its way.
                if name not in kept[kind] and not self._tasks:
                    await asyncio.to_thread(self._blobs.remove, kind, name)

    # --- painting --------------------------------------------------------------------------------------------

    async def _run(self, generation: Generation) -> None:
        async with self._slots:
            try:
                done = await self._painted(generation, described(generation.request))
                if done is not None:
                    await self._succeed(generation, done)
            except GatewayError as error:
                if error.code is not Code.DRAINING:  # the next process begins it, or says that it was interrupted
                    await self._fail(generation, error)
            except Exception as error:
                self._failed(error)
                await self._fail(generation, GatewayError(Code.INTERNAL))

    async def _painted(self, generation: Generation, request: Request) -> Done | None:
        """None if somebody else has it."""
        spec = self._catalogue.current.models.get(generation.model)
        if spec is None:
            raise GatewayError(Code.UNAVAILABLE, say("model_missing", model=generation.model))
        loaded = await self._load(request.inputs)
        self.painting.check(spec, request.wish)
        if not await self._database.write(lambda tx: rows.submitted(tx, generation.id, self._clock())):
            return None
        masks = [picture for role, picture in loaded if role == "mask"]
        inputs = tuple(picture for role, picture in loaded if role != "mask")
        return await self.painting.paint(generation.user_id, spec, request.wish, inputs, masks[0] if masks else None)

    async def _load(self, inputs: tuple[Kept, ...]) -> list[tuple[Role, Picture]]:
        found, size = [], 0
        for kept in inputs:
            picture = await load(kept, self._blobs, self.fetcher)
            size += len(picture.data)
            if size > BUDGET:
                raise GatewayError(Code.INVALID_REQUEST, say("images_budget"))
            found.append((kept.role, picture))
        return found

    def _forget(self, inputs: tuple[Kept, ...]) -> None:
        for kept in inputs:
            if kept.kind == "inputs":
                self._blobs.remove("inputs", kept.where)

    async def _succeed(self, generation: Generation, done: Done) -> None:
        files = []
        for picture in done.painted.images:
            mime_type = sniff(picture.data) or ""
            if not mime_type.startswith("image/"):
                raise GatewayError(Code.UPSTREAM_FAILED)
            name = new_id("art")
            await asyncio.to_thread(self._blobs.put, "artifacts", name, picture.data)
            files.append(Artifact(artifact_id=name, mime_type=mime_type, size=len(picture.data)))
        result = {"warnings": [f"ignored: {key}" for key in done.painted.ignored]}
        await self._end(generation, status="succeeded", files=tuple(files), cost_usd=done.cost_usd, result=result)

    async def _fail(self, generation: Generation, error: GatewayError) -> None:
        told: dict[str, Any] = {"code": error.code.value, "message": render(error.message, "en"), "meta": {}}
        await self._end(generation, status="failed", error=told)

    async def _end(self, generation: Generation, **changes: Any) -> None:
        ended = msgspec.structs.replace(generation, completed_at=self._clock(), webhook_event=new_id("evt"), **changes)
        await self._database.write(lambda tx: rows.ended(tx, ended))
        await asyncio.to_thread(self._forget, described(generation.request).inputs)
        self._courier.wake()

    # --- telling ---------------------------------------------------------------------------------------------

    async def due(self) -> list[Letter]:
        """See `delivery.Outbox`."""
        return [self._letter(row) for row in await self._database.read(rows.due)]

    async def note(self, letter: Letter, attempt: Attempt) -> None:
        """See `delivery.Outbox`."""
        done_at = attempt.at if attempt.delivered else None
        await self._database.write(
            lambda tx: rows.attempted(tx, letter.event, attempt.status, attempt.next_at, done_at)
        )

    async def redeliver(self, event: str) -> bool:
        """Attempt a webhook once more now, delivered or given up before; False if there is none of this id."""
        found = await self._database.write(lambda tx: rows.tell_again(tx, event, self._clock()))
        self._courier.wake()
        return found

    async def webhooks(self, most: int) -> list[tuple[Generation, bytes]]:
        """The newest webhooks, and what each says (its addresses are good for two hours from now)."""
        return [(row, self._told(row)) for row in await self._database.read(lambda tx: rows.told(tx, most))]

    def _told(self, row: Generation) -> bytes:
        told = {"id": row.webhook_event, "type": f"image.generation.{row.status}", "data": self._describe(row)}
        return json.encode(told)

    def _letter(self, row: Generation) -> Letter:
        assert row.webhook_event is not None and row.webhook_due_at is not None
        return Letter(
            event=row.webhook_event,
            url=row.webhook_url,
            body=self._told(row),
            attempts=row.webhook_attempts,
            due_at=row.webhook_due_at,
        )
