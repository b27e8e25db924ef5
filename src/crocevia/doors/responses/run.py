"""One answer being made, also while nobody waits: the call under way, its frames, and how it ends on every path."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

import msgspec

from crocevia.asgi.answers import expected
from crocevia.asgi.hangup import wait_first
from crocevia.asgi.http import EventResponse, Response
from crocevia.asgi.stream import EventStream
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.events import TRUNCATING, StopReason, is_silent
from crocevia.doors.responses import errors, options, resource
from crocevia.doors.responses.answer_plan import AnswerPlan, revived, turn_of
from crocevia.doors.responses.caller import Request
from crocevia.doors.responses.encode import AnswerEncoder
from crocevia.doors.responses.frames import CLOSING, DONE, Frame, sse
from crocevia.doors.responses.services import Services
from crocevia.runtime.answers_store import StoredResponse
from crocevia.runtime.gateway import Cut
from crocevia.runtime.turns.run_service import Work

Write: TypeAlias = Callable[[list[Frame]], Awaitable[None]]

UNFINISHED: Final = frozenset({"queued", "in_progress"})
MOST: Final = 1000  # running at once


class Run:
    """`resource` is the answer as it is known at the moment. told: every frame so far, where they can be asked for
    again. must_stream: the caller can be told only by frames.
    """

    def __init__(self, services: Services, plan: AnswerPlan, chat: str | None = None) -> None:
        """chat: where an earlier process began it."""
        self.plan = plan
        self.resource = plan.resource
        self.encoder = AnswerEncoder(
            plan.resource.id,
            seal=plan.seal,
            quiet=not (plan.stream or plan.background),
            told=plan.tools.told,
        )
        self.kept: StoredResponse | None = None
        self.error: GatewayError | None = None
        self.events: bytes | None = None
        self.told: list[Frame] | None = None
        self.chat = chat
        self.turn = plan.turn
        self._services = services

    async def open(self) -> Work:
        """Admit the call, or begin the run. Raises GatewayError."""
        try:
            return await self._opened()
        except BaseException:
            self.release()
            raise

    async def _opened(self) -> Work:
        plan, services = self.plan, self._services
        if self.chat is not None:
            names = frozenset(tool.name for tool in plan.tools.offered)
            return await services.runs.adopt(self.chat, turn_of(self.resource.id), names)
        if plan.order is None:
            return services.gateway.open_model(plan.user_id, plan.model, plan.draft)
        run = await services.runs.open(plan.order)
        self.chat = run.chat_id
        if self.chat is not None:
            self.keep()
        return run

    async def drive(self, call: Work, write: Write, *, must_stream: Callable[[], bool]) -> None:
        """Make the answer, frame by frame. Raises GatewayError if it failed before anything was written.

        A caller who hangs up (`call.cut`) ends it silently. The answer is stored before its last frame is written.
        """
        self._services.responses.running.add(self.resource.id)
        try:
            async with call:
                await self._answer(call, write)
            if self.chat is not None and call.cut is Cut.CLIENT_GONE and not self.plan.background:
                self.cancelled()
        except Exception as error:
            known = expected(error, "responses")
            if _goes_on(call, known):
                return
            # What was begun is closed first: the failed answer holds it, and no item stays open.
            # A choice that was not met is paid for: a status would have clients ask again.
            unmet = known.reason is Reason.CHOICE_UNMET and self.plan.stream
            unheard = not (self.encoder.started or must_stream() or unmet)
            frames = self.fail(known, call)
            if unheard:
                raise known from error
            await write(frames)
        finally:
            self._services.responses.running.discard(self.resource.id)
            self.release()

    def release(self) -> None:
        """Let the next turn of the session speak: it finds this one's answer, or none."""
        if self.turn is not None:
            self.turn.release()

    async def _answer(self, call: Work, write: Write) -> None:
        encoder = self.encoder
        async for batch in call:
            if not encoder.started and is_silent(batch):
                continue
            if not encoder.started and self.chat is not None:
                await self.settled()  # whoever is told of it finds it, also in the next process
            frames = encoder.begin(self.resource) if not encoder.started else []
            frames += encoder.feed(batch)
            if frames:
                await write(frames)
        answer = call.fold.answer()
        stop = StopReason.END if encoder.declined else answer.stop  # a refusal in words is an answer
        cut_short = stop in TRUNCATING
        if not cut_short and not encoder.declined:
            called = tuple(asked.name for asked in answer.tool_calls)
            options.check_met(self.plan.tools, called)
        frames = [] if encoder.started else encoder.begin(self.resource)
        frames += encoder.close("incomplete" if cut_short else "completed")
        self.resource = resource.ended(self.resource, encoder.items, stop, answer.usage, int(time.time()))
        frames += encoder.end(self.resource)
        self.ended(frames)
        await self.settled()
        self.release()  # how fast its caller reads is no concern of the session's
        await write(frames)

    def fail(self, error: GatewayError, call: Work | None = None) -> list[Frame]:
        """The answer has failed; it is stored as that. Returns how that is told: what was open is closed first."""
        self.error = error
        usage = call.fold.usage if call is not None and self.encoder.started else None
        frames = self.encoder.close("incomplete") if self.encoder.started else self.encoder.begin(self.plan.resource)
        self.resource = resource.failed(self.resource, self.encoder.items, error, usage)
        frames += self.encoder.fail(errors.failure(error), self.resource)
        self.ended(frames)
        return frames

    def ended(self, frames: list[Frame]) -> None:
        """Store the answer with its stream, of which these are the last frames."""
        if self.told is not None:
            self.events = sse([*self.told, *frames])
        self.keep()

    def keep(self) -> None:
        """Store the answer as it is now, if it is to be stored at all."""
        seconds, blocks = self._services.responses.keep_seconds, self.encoder.blocks
        self.kept = self.plan.stored(self.resource, seconds, self.events, self.chat, blocks)
        if self.plan.keep:
            self._services.responses.put(self.kept)

    async def settled(self) -> None:
        """Return when what is to be stored is."""
        if self.plan.keep:
            await self._services.responses.settled(self.resource.id)

    def cancelled(self) -> list[Frame]:
        """Somebody asked for it to end. Returns how that is told."""
        if self.resource.status == "cancelled":
            return []
        self.resource = msgspec.structs.replace(self.resource, status="cancelled")
        frames = self.encoder.end(self.resource)
        self.ended(frames)
        return frames


def _goes_on(call: Work, error: GatewayError) -> bool:
    """This process ends, and the next one goes on with it."""
    return call.resumable and error.code is Code.DRAINING


class RunningAnswer:
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
        self._jobs: dict[str, RunningAnswer] = {}
        self._closing = False

    def find(self, subject: str, response_id: str) -> RunningAnswer | None:
        job = self._jobs.get(response_id)
        return job if job is not None and job.run.plan.link.subject == subject else None

    async def answer(self, run: Run, request: Request) -> Response | EventResponse:
        """Start the run; its caller gets the queued answer once it is on disk, or follows it. Raises GatewayError."""
        job = self.start(run)
        await run.settled()
        return self.follow(job, 0, request) if run.plan.stream else Response(200, run.resource)

    def start(self, run: Run) -> RunningAnswer:
        """Raises GatewayError if the call is not admitted, or too many run already."""
        if len(self._jobs) >= MOST:
            run.release()
            raise GatewayError(Reason.BACKGROUND_BUSY, retry_after=5, limit=MOST)
        job = self._job(run)
        run.keep()
        return job

    async def resume(self) -> None:
        """Go on with what an earlier process began; where nobody can, it has failed."""
        for stored in await self._services.responses.unfinished():
            # Its turn may have begun an instant before the row could say where.
            chat = stored.chat or await self._services.runs.chat_of(turn_of(stored.id))
            try:
                run = Run(self._services, revived(stored), chat)
            except (GatewayError, msgspec.MsgspecError):
                continue
            if chat is None:
                run.fail(GatewayError(Reason.ANSWER_LOST))
                continue
            if stored.session is not None:
                run.turn = self._services.responses.turns.try_enter((stored.subject, stored.agent, stored.session))
            self._job(run)

    def _job(self, run: Run) -> RunningAnswer:
        job = RunningAnswer(run)
        run.told = job.frames
        if run.plan.background:
            run.resource = msgspec.structs.replace(run.resource, status="queued")
            job.frames += run.encoder.queued(run.resource)
        self._jobs[run.resource.id] = job
        job.task = asyncio.create_task(self._run(job))
        return job

    async def cancel(self, job: RunningAnswer) -> None:
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

    def follow(self, job: RunningAnswer, start: int, request: Request) -> EventResponse:
        """The frames from `start` on as an event stream, until the run is over or the client is gone."""
        return EventResponse(partial(_follow, job, start, request), headers=CLOSING)

    async def _run(self, job: RunningAnswer) -> None:
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
                job.frames += run.cancelled()
        except asyncio.CancelledError:
            job.frames += run.cancelled()
        except Exception as error:
            known = expected(error, "responses")
            job.frames += run.fail(known)
        finally:
            job.over = True
            run.release()
            self._jobs.pop(run.resource.id, None)
            job.tell()


async def _follow(job: RunningAnswer, start: int, request: Request, stream: EventStream) -> None:
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
