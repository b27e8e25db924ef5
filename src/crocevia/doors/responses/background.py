"""Answers that are made while nobody waits: started, looked at, followed, cancelled."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import msgspec

from crocevia.asgi.answers import expected
from crocevia.asgi.hangup import wait_first
from crocevia.asgi.http import EventResponse, Response
from crocevia.asgi.stream import EventStream
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.responses import errors, plan
from crocevia.doors.responses.caller import Request
from crocevia.doors.responses.frames import CLOSING, DONE, Frame, sse
from crocevia.doors.responses.run import Run
from crocevia.doors.responses.services import Services
from crocevia.runtime.gateway import Cut
from crocevia.runtime.turns.run_service import Work

UNFINISHED: Final = frozenset({"queued", "in_progress"})
MOST: Final = 1000  # running at once


class Job:
    """A run under way and the frames of it so far; `changed` is set when there are more, or none will come."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.frames: list[Frame] = []
        self.over = False
        self.call: Work | None = None
        self.task: asyncio.Task[None] | None = None
        self._waiting: set[asyncio.Event] = set()

    async def write(self, frames: list[Frame]) -> None:
        self.frames += frames
        self.tell()

    def tell(self) -> None:
        for event in self._waiting:
            event.set()

    async def ended(self) -> None:
        """Return when it is over."""
        while not self.over:
            await self.more(len(self.frames))

    async def more(self, seen: int) -> None:
        """Return when there are more than `seen` frames, or it is over."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            while not self.over and len(self.frames) <= seen:
                event.clear()
                await event.wait()
        finally:
            self._waiting.discard(event)


class Background:
    """One per server; belongs to one event loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._jobs: dict[str, Job] = {}
        self._closing = False

    def find(self, subject: str, response_id: str) -> Job | None:
        job = self._jobs.get(response_id)
        return job if job is not None and job.run.plan.link.subject == subject else None

    def answer(self, run: Run, request: Request) -> Response | EventResponse:
        """Start the run; its caller gets the queued answer at once, or follows it. Raises GatewayError."""
        job = self.start(run)
        return self.follow(job, 0, request) if run.plan.stream else Response(200, run.resource)

    def start(self, run: Run) -> Job:
        """Raises GatewayError if the call is not admitted, or too many run already."""
        if len(self._jobs) >= MOST:
            raise GatewayError(Reason.BACKGROUND_BUSY, retry_after=5, limit=MOST)
        job = self._job(run)
        run.keep()
        return job

    async def resume(self) -> None:
        """Go on with what an earlier process began; where nobody can, it has failed."""
        for stored in await self._services.responses.unfinished():
            try:
                run = Run(self._services, plan.revived(stored), stored.chat)
            except (GatewayError, msgspec.MsgspecError):
                continue
            if stored.chat is None:
                run.fail(GatewayError(Reason.ANSWER_LOST))
            else:
                self._job(run)

    def _job(self, run: Run) -> Job:
        job = Job(run)
        run.told = job.frames
        if run.plan.background:
            run.resource = msgspec.structs.replace(run.resource, status="queued")
            job.frames += run.encoder.queued(run.resource)
        self._jobs[run.resource.id] = job
        job.task = asyncio.create_task(self._run(job))
        return job

    async def cancel(self, job: Job) -> None:
        """End the run now; returns when it has ended."""
        if job.call is not None:
            job.call.interrupt(Cut.CLIENT_GONE)
        elif job.task is not None:
            job.task.cancel()
        await job.ended()

    async def close(self) -> None:
        """Cut what still runs; what is the turn of a chat goes on in the next process."""
        self._closing = True
        for job in tuple(self._jobs.values()):
            if job.call is not None:
                job.call.interrupt(Cut.DRAINED)
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    def follow(self, job: Job, start: int, request: Request) -> EventResponse:
        """The frames from `start` on as an event stream, until the run is over or the client is gone."""
        return EventResponse(partial(_follow, job, start, request), headers=CLOSING)

    async def _run(self, job: Job) -> None:
        run = job.run
        try:
            job.call = await run.open()
            if self._closing:
                asyncio.get_running_loop().call_soon(job.call.interrupt, Cut.DRAINED)
            run.resource = msgspec.structs.replace(run.resource, status="in_progress")
            if run.plan.background:
                job.frames += run.encoder.progress(run.resource)
            run.keep()
            await run.drive(job.call, job.write, must_stream=lambda: True)
            if job.call.cut is Cut.CLIENT_GONE:
                run.cancelled()
        except asyncio.CancelledError:
            run.cancelled()
        except Exception as error:
            known = expected(error, "responses")
            run.fail(known)
            job.frames += run.encoder.fail(errors.failure(known), run.resource)
        finally:
            job.over = True
            self._jobs.pop(run.resource.id, None)
            job.tell()


async def _follow(job: Job, start: int, request: Request, stream: EventStream) -> None:
    with request.on_disconnect() as leaving:
        seen = start
        while not leaving.done():
            fresh = job.frames[seen:]
            seen += len(fresh)
            if fresh:
                await stream.write(sse(fresh))
            if job.over and seen >= len(job.frames):
                ended = job.run.resource.status not in UNFINISHED
                await stream.end(DONE if ended else b"")  # else the next process goes on with it
                return
            more = asyncio.ensure_future(job.more(seen))
            try:
                await wait_first(more, leaving)
            finally:
                more.cancel()
