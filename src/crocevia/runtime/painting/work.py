"""The work behind generated pictures: painting, telling by webhook, forgetting what has expired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from crocevia.core import json
from crocevia.core.errors import Code, GatewayError, say
from crocevia.core.ids import new_id
from crocevia.core.images import Picture
from crocevia.core.texts import render
from crocevia.documents.sniff import sniff
from crocevia.runtime.files.blobs import Blobs
from crocevia.storage import images as rows
from crocevia.storage.images import Artifact, Generation

from .inputs import BUDGET, WEBHOOK, described, load

if TYPE_CHECKING:
    from crocevia.documents.fetch import Fetcher

    from .provider import Done, Painting

AT_ONCE: Final = 4
SWEEP_SECONDS: Final = 600.0
_STORE_RETRY: Final = 5.0
_TRIES: Final = (5, 30, 120, 600, 1800)  # seconds; the addresses in a webhook are good for two hours
_DELIVERED: Final = range(200, 300)

Describe = Callable[[Generation], dict[str, Any]]
"""What a webhook says of a generation."""


class ImageWork:
    """One per server, in its Control. Without `start` orders are painted, but nobody is told and nothing swept."""

    def __init__(self, fetcher: Fetcher, painting: Painting | None) -> None:
        self.fetcher = fetcher
        self._painting = painting
        self._control: Any = None
        self._describe: Describe = lambda generation: {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()

    def bind(self, control: Any) -> None:
        """Whose work it is."""
        self._control = control

    def painting(self) -> Painting:
        """Raises GatewayError(UNAVAILABLE) where nothing can be painted."""
        if self._painting is None:
            raise GatewayError(Code.UNAVAILABLE)
        return self._painting

    async def start(self, describe: Describe) -> None:
        """Go on with what an earlier process left, tell by webhook, sweep, until `close`."""
        self._describe = describe
        for left in await self._control.database.read(rows.unfinished):
            if left.status == "accepted":
                self.begin(left)
            else:  # it may have been painted and paid: it is not asked for twice
                await self._fail(left, GatewayError(Code.UNAVAILABLE, say("generation_interrupted")))
        self._spawn(self._tell())
        self._spawn(self._sweep())

    async def close(self) -> None:
        """Stop; what was not begun is painted by the next process. Idempotent."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.fetcher.close()

    def begin(self, generation: Generation) -> None:
        """Paint it when its turn comes."""
        self._spawn(self._run(generation))

    async def settled(self) -> None:
        """Return when nothing is being painted."""
        while painting := [task for task in self._tasks if task.get_name() == "_run"]:
            await asyncio.wait(painting)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work, name=work.__name__)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, generation: Generation) -> None:
        control = self._control
        async with self._slots:
            request = described(generation.request)
            try:
                spec = control.catalogue.current.models.get(generation.model)
                if spec is None:
                    raise GatewayError(Code.UNAVAILABLE, say("model_missing", model=generation.model))
                loaded = await self._load(request.inputs)
                if not await control.database.write(lambda tx: rows.submitted(tx, generation.id, control.clock())):
                    return
                masks = [picture for role, picture in loaded if role == "mask"]
                inputs = tuple(picture for role, picture in loaded if role != "mask")
                mask = masks[0] if masks else None
                done = await self.painting().paint(generation.user_id, spec, request.wish, inputs, mask)
                await self._succeed(generation, done)
            except GatewayError as error:
                await self._fail(generation, error)
            except Exception as error:
                _report(error)
                await self._fail(generation, GatewayError(Code.INTERNAL))
            finally:
                await asyncio.to_thread(self._forget, request.inputs)

    async def _load(self, inputs: Any) -> list[tuple[str, Picture]]:
        found, size = [], 0
        for kept in inputs:
            picture = await load(kept, Blobs(self._control.home.files), self.fetcher)
            size += len(picture.data)
            if size > BUDGET:
                raise GatewayError(Code.INVALID_REQUEST, say("images_budget"))
            found.append((kept.role, picture))
        return found

    def _forget(self, inputs: Any) -> None:
        for kept in inputs:
            if kept.kind == "inputs":
                Blobs(self._control.home.files).remove("inputs", kept.where)

    async def _succeed(self, generation: Generation, done: Done) -> None:
        blobs, files = Blobs(self._control.home.files), []
        for picture in done.painted.images:
            mime_type = sniff(picture.data) or ""
            if not mime_type.startswith("image/"):
                raise GatewayError(Code.UPSTREAM_FAILED)
            name = new_id("art")
            await asyncio.to_thread(blobs.put, "artifacts", name, picture.data)
            files.append(Artifact(artifact_id=name, mime_type=mime_type, size=len(picture.data)))
        result = {"warnings": [f"ignored: {key}" for key in done.painted.ignored]}
        await self._end(generation, status="succeeded", files=tuple(files), cost_usd=done.cost_usd, result=result)

    async def _fail(self, generation: Generation, error: GatewayError) -> None:
        told: dict[str, Any] = {"code": error.code.value, "message": render(error.message, "en"), "meta": {}}
        await self._end(generation, status="failed", error=told)

    async def _end(self, generation: Generation, **changes: Any) -> None:
        ended = msgspec.structs.replace(
            generation, completed_at=self._control.clock(), webhook_event=new_id("evt"), **changes
        )
        await self._control.database.write(lambda tx: rows.ended(tx, ended))
        self._wake.set()

    async def _tell(self) -> None:
        while True:
            self._wake.clear()
            try:
                waiting = await self._round()
            except GatewayError:
                waiting = _STORE_RETRY
            with suppress(TimeoutError):
                async with asyncio.timeout(waiting):
                    await self._wake.wait()

    async def _round(self) -> float | None:
        """Attempt what is due; the seconds until the next is."""
        control = self._control
        now = control.clock()
        due = await control.database.read(rows.due)
        await asyncio.gather(*(self._attempt(row) for row in due if row.webhook_due_at <= now))
        later = await control.database.read(rows.due)
        return max(0.0, later[0].webhook_due_at - control.clock()) if later else None

    async def _attempt(self, row: Generation) -> None:
        control = self._control
        good = await self._send(row)
        again = not good and row.webhook_attempts < len(_TRIES)
        due_at = control.clock() + _TRIES[row.webhook_attempts] if again else None
        await control.database.write(lambda tx: rows.attempted(tx, row.id, due_at))

    async def _send(self, row: Generation) -> bool:
        control = self._control
        assert row.webhook_event is not None
        body = json.encode(
            {"id": row.webhook_event, "type": f"image.generation.{row.status}", "data": self._describe(row)}
        )
        moment = str(int(control.clock()))
        try:
            signed = control.signer.sign(b".".join((moment.encode(), row.webhook_event.encode(), body)))
            headers = {
                "Content-Type": "application/json",
                "X-Crocevia-Event": row.webhook_event,
                "X-Crocevia-Timestamp": moment,
                "X-Crocevia-Key": signed.kid,
                "X-Crocevia-Signature": signed.sig,
            }
            return (await self.fetcher.deliver(row.webhook_url, body, headers, WEBHOOK)).status in _DELIVERED
        except (GatewayError, OSError, ValueError):
            return False

    async def _sweep(self) -> None:
        from crocevia.runtime.control import chat_attachments

        while True:
            with suppress(GatewayError):
                await chat_attachments.sweep(self._control)
                await self.sweep()
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        """Forget what expired, and bytes without a row."""
        control, blobs = self._control, Blobs(self._control.home.files)
        known = {kind: await asyncio.to_thread(blobs.names, kind) for kind in ("uploads", "artifacts")}
        await control.database.write(lambda tx: rows.drop_expired(tx, control.clock()))
        kept = {
            "uploads": await control.database.read(rows.kept_uploads),
            "artifacts": await control.database.read(rows.kept_artifacts),
        }
        for kind, names in known.items():
            for name in names:
                if name not in kept[kind] and self._is_idle():
                    await asyncio.to_thread(blobs.remove, kind, name)

    def _is_idle(self) -> bool:
        # A picture has its bytes before its row: nothing is swept while one is on its way.
        return not any(task.get_name() == "_run" for task in self._tasks)


def _report(error: Exception) -> None:
    import structlog  # a tenth of a second that most servers never need

    structlog.get_logger("crocevia.images").error("a generation met a fault", error=type(error).__name__)
