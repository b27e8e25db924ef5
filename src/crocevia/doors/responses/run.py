"""One answer being made: the call under way, its frames, and how it ends on every path."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from crocevia.asgi.answers import expected
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import StopReason
from crocevia.doors.responses import errors, options, resource
from crocevia.doors.responses.encode import Encoder
from crocevia.doors.responses.frames import Frame, sse
from crocevia.doors.responses.orders import turn_of
from crocevia.doors.responses.plan import Plan
from crocevia.doors.responses.services import Services
from crocevia.runtime.answers_store import StoredResponse
from crocevia.runtime.gateway import Cut
from crocevia.runtime.turns.run_service import Work

Write: TypeAlias = Callable[[list[Frame]], Awaitable[None]]

_CUT_SHORT: Final = frozenset({StopReason.MAX_TOKENS, StopReason.REFUSAL})


class Run:
    """`resource` is the answer as it is known at the moment. told: every frame so far, where they can be asked for
    again. must_stream: the caller can be told only by frames.
    """

    def __init__(self, services: Services, plan: Plan, chat: str | None = None) -> None:
        """chat: where an earlier process began it."""
        self.plan = plan
        self.resource = plan.resource
        self.encoder = Encoder(plan.resource.id, sealing=plan.sealing, quiet=not (plan.stream or plan.background))
        self.kept: StoredResponse | None = None
        self.error: GatewayError | None = None
        self.events: bytes | None = None
        self.told: list[Frame] | None = None
        self.chat = chat
        self._services = services

    async def open(self) -> Work:
        """Admit the call, or begin the run. Raises GatewayError."""
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
            if self.chat is not None and call.cut is Cut.CLIENT_GONE:
                self.cancelled()
        except Exception as error:
            known = expected(error, "responses")
            if _goes_on(call, known):
                return
            self.fail(known, call)
            if not (self.encoder.started or must_stream()):
                raise known from error
            frames = [] if self.encoder.started else self.encoder.begin(self.plan.resource)
            await write([*frames, *self.encoder.fail(errors.failure(known), self.resource)])
        finally:
            self._services.responses.running.discard(self.resource.id)

    async def _answer(self, call: Work, write: Write) -> None:
        encoder = self.encoder
        async for batch in call:
            frames = encoder.begin(self.resource) if not encoder.started else []
            frames += encoder.feed(batch)
            if frames:
                await write(frames)
        answer = call.fold.answer()
        stop = StopReason.END if encoder.declined else answer.stop  # a refusal in words is an answer
        cut_short = stop in _CUT_SHORT
        if not cut_short and not encoder.declined:
            called = tuple(asked.name for asked in answer.tool_calls)
            options.check_met(self.plan.tools.choice, self.plan.tools.offered, called)
        frames = encoder.close("incomplete" if cut_short else "completed")
        self.resource = resource.ended(self.resource, encoder.items, stop, answer.usage, int(time.time()))
        frames += encoder.end(self.resource)
        if self.told is not None:
            self.events = sse([*self.told, *frames])
        self.keep()
        await self.settled()
        await write(frames)

    def fail(self, error: GatewayError, call: Work | None = None) -> None:
        """The answer has failed; it is stored as that."""
        self.error = error
        usage = call.fold.usage if call is not None and self.encoder.started else None
        self.resource = resource.failed(self.resource, self.encoder.items, error, usage)
        self.keep()

    def keep(self) -> None:
        """Store the answer as it is now, if it is to be stored at all."""
        self.kept = self.plan.stored(self.resource, self._services.responses.keep_seconds, self.events, self.chat)
        if self.plan.keep:
            self._services.responses.put(self.kept)

    async def settled(self) -> None:
        """Return when what is to be stored is."""
        if self.plan.keep:
            await self._services.responses.settled(self.resource.id)

    def cancelled(self) -> None:
        """Somebody asked for it to end."""
        self.resource = msgspec.structs.replace(self.resource, status="cancelled")
        self.keep()


def _goes_on(call: Work, error: GatewayError) -> bool:
    """This process ends, and the next one goes on with it."""
    return call.resumable and error.code is Code.DRAINING
