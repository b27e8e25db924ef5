"""A call that is no conversation, texts to vectors or a picture: one wait, then all of it. See `Gateway.unary_call`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Literal

import msgspec

from crocevia.core.calls import ModelRequest
from crocevia.core.catalogue import ModelSpec
from crocevia.core.usage import Usage
from crocevia.policy.admission import Permit
from crocevia.runtime.calls import Cut, failing, just_ends, usage_without_answer
from crocevia.runtime.money.spend import CallReservation
from crocevia.runtime.records import Durable, recorded
from crocevia.storage.records import EndedBy, SettledCall


class UnaryDraft(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks which model."""

    door: str
    encode: str
    user_id: str
    model: ModelSpec
    engine: str
    asked: ModelRequest
    """As far as money goes."""
    seconds: float
    """How long it may take."""
    bytes_in: int = 0
    """Of the request."""


class UnaryCall:
    """Use it as `async with call:`, in one task; it holds a slot until the block is left.

    deadline: of the event loop. usage: what it consumed, noted by whoever hears it. A cut raises its GatewayError
    where the block is left.
    """

    def __init__(
        self,
        call_id: str,
        reservation: CallReservation,
        permit: Permit,
        durable: Durable,
        *,
        seconds: float,
        on_end: Callable[[UnaryCall, SettledCall], None],
    ) -> None:
        self.id = call_id
        self._usage = Usage()
        self.cut: Cut | None = None
        self._reservation = reservation
        self._permit = permit
        self._durable = durable
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._opened = self._loop.time()
        self.deadline = self._opened + seconds
        self._task: asyncio.Task[object] | None = None

    @property
    def usage(self) -> Usage:
        return self._usage

    @usage.setter
    def usage(self, reported: Usage) -> None:
        self._usage = Usage().updated(reported)  # which knows what is beyond reason

    @property
    def cost_usd(self) -> float | None:
        """What it cost; None: unknown. Only after the block has been left."""
        return self._reservation.settle(self.usage)

    def interrupt(self, why: Literal[Cut.DRAINED]) -> None:
        """End the call now; afterwards this does nothing."""
        if self.cut is None and self._task is not None:
            self.cut = why
            self._task.cancel()

    async def __aenter__(self) -> UnaryCall:
        self._task = asyncio.current_task()
        try:
            await recorded(self._durable, must=self._reservation.budgeted)
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        assert task is not None
        self._permit.release()
        ended: tuple[str, EndedBy] = ("ok", "model") if error is None else failing(self.cut, error)
        if error is not None and self.cut is None and self._usage == Usage():
            self._usage = usage_without_answer(error)
        self._on_end(
            self,
            SettledCall(
                id=self.id,
                settled_at=time.time(),
                outcome=ended[0],
                ended_by=ended[1],
                usage=self.usage,
                cost_usd=self._reservation.settle(self.usage),
                first_byte_seconds=self._loop.time() - self._opened,
            ),
        )
        if self.cut is not None:
            just_ends(self.cut, task, error)
