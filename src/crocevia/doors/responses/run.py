"""One answer being made: the call under way, its frames, and how it ends on every path."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from crocevia.core.errors import GatewayError
from crocevia.core.events import StopReason
from crocevia.runtime.control.responses import StoredResponse
from crocevia.runtime.gateway import Call

from . import errors, options, resource
from .encode import Encoder, Frame
from .plan import Desk, Plan

Write: TypeAlias = Callable[[list[Frame]], Awaitable[None]]

_CUT_SHORT: Final = frozenset({StopReason.MAX_TOKENS, StopReason.REFUSAL})


class Run:
    """`resource` is the answer as it is known at the moment. insists: the caller can be told only by frames."""

    def __init__(self, desk: Desk, plan: Plan) -> None:
        self.plan = plan
        self.resource = plan.resource
        self.encoder = Encoder(plan.resource.id, sealing=plan.sealing, quiet=not (plan.stream or plan.background))
        self.kept: StoredResponse | None = None
        self.error: GatewayError | None = None
        self.events: bytes | None = None
        self._desk = desk

    def open(self) -> Call:
        """Admit the call. Raises GatewayError."""
        return self._desk.gateway.open_model(self.plan.operator.user_id, self.plan.target.model, self.plan.draft)

    async def drive(self, call: Call, write: Write, *, insists: Callable[[], bool]) -> None:
        """Make the answer, frame by frame. Raises GatewayError if it failed before anything was written.

        A caller who hangs up (`call.cut`) ends it silently. The answer is stored before its last frame is written.
        """
        try:
            async with call:
                await self._answer(call, write)
        except Exception as error:
            known = errors.expected(error)
            self.fail(known, call)
            if not (self.encoder.started or insists()):
                raise known from error
            frames = [] if self.encoder.started else self.encoder.begin(self.plan.resource)
            await write([*frames, *self.encoder.fail(errors.failure(known), self.resource)])

    async def _answer(self, call: Call, write: Write) -> None:
        encoder = self.encoder
        async for batch in call:
            frames = encoder.begin(self.resource) if not encoder.started else []
            frames += encoder.feed(batch)
            if frames:
                await write(frames)
        answer = call.fold.answer()
        cut_short = answer.stop in _CUT_SHORT
        if not cut_short:
            called = tuple(asked.name for asked in answer.tool_calls)
            options.check_met(self.plan.tools.choice, self.plan.tools.offered, called)
        frames = encoder.close("incomplete" if cut_short else "completed")
        self.resource = resource.ended(self.resource, encoder.items, answer.stop, answer.usage, int(time.time()))
        self.keep()
        await write(frames + encoder.end(self.resource))

    def fail(self, error: GatewayError, call: Call | None = None) -> None:
        """The answer has failed; it is stored as that."""
        self.error = error
        usage = call.fold.usage if call is not None and self.encoder.started else None
        self.resource = resource.failed(self.resource, self.encoder.items, error, usage)
        self.keep()

    def keep(self) -> None:
        """Store the answer as it is now, if it is to be stored at all."""
        self.kept = self.plan.stored(self.resource, self._desk.responses.keep_seconds, self.events)
        if self.plan.keep:
            self._desk.responses.put(self.kept)

    def cancelled(self) -> None:
        """Somebody asked for it to end."""
        self.resource = msgspec.structs.replace(self.resource, status="cancelled")
        self.keep()
