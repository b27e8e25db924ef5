"""A call under way: drives the engine's stream, may be cut from outside, and ends exactly once on every path."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import Enum, auto
from types import TracebackType
from typing import Any, Final

import msgspec

from crocevia.core.answers import Answer, AnswerFold
from crocevia.core.calls import Batches, ModelRequest
from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.events import ModelEvent, StopReason
from crocevia.core.usage import Usage
from crocevia.policy.admission import Permit
from crocevia.runtime.fitting import Labels
from crocevia.runtime.money.estimates import known_usage
from crocevia.runtime.money.spend import CallReservation
from crocevia.runtime.reasoning.routing import Route
from crocevia.runtime.records import Durable, recorded
from crocevia.storage.records import EndedBy, SettledCall


class Cut(Enum):
    """Why a call was ended from outside."""

    CLIENT_GONE = auto()
    TIMED_OUT = auto()
    DRAINED = auto()


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    progress: float = 600.0
    """Without anything from the provider."""
    overall: float = 900.0
    """For the whole call."""


DEFAULT_LIMITS: Final = CallLimits()

# What the record says, and what the caller is told (None: nobody is there).
_CUTS: Final[dict[Cut, tuple[str, EndedBy, Reason | None]]] = {
    Cut.CLIENT_GONE: ("cancelled", "client", None),
    Cut.TIMED_OUT: (Code.UPSTREAM_TIMEOUT.value, "gateway", Reason.UPSTREAM_TIMEOUT),
    Cut.DRAINED: (Code.DRAINING.value, "gateway", Reason.DRAINING),
}
# A provider that says one of these instead of an answer bills nothing, and nor does one that was never asked. Of all
# else (silence, half an answer, one that cannot be read) nobody knows.
_UNBILLED_CODES: Final = frozenset(
    {
        Code.INVALID_REQUEST,
        Code.UNSUPPORTED,
        Code.UNAVAILABLE,
        Code.REFUSED,
        Code.UPSTREAM_OVERLOADED,
        Code.UPSTREAM_REJECTED,
    }
)
_UNBILLED: Final = frozenset(
    {
        Reason.UPSTREAM_FAILED,
        Reason.UPSTREAM_UNREACHABLE,
        Reason.UPSTREAM_UNTRUSTED,
        Reason.UPSTREAM_KEY_REFUSED,
        Reason.UPSTREAM_QUOTA,
    }
)
_NOTHING: Final = Usage(input_tokens=0, output_tokens=0)
_PROVIDER_FAULTS: Final = frozenset(
    {
        Code.REFUSED,
        Code.UPSTREAM_FAILED,
        Code.UPSTREAM_OVERLOADED,
        Code.UPSTREAM_TIMEOUT,
        Code.UPSTREAM_REJECTED,
    }
)


class Attempt(msgspec.Struct, frozen=True):
    """Who answers, and the money set aside for it. Nobody is asked before the record of both is durable."""

    route: Route
    reservation: CallReservation
    durable: Durable


class Call:
    """One request to one model. Use it as `async with call: async for batch in call: …`, in one task.

    route: who answers, with what. fallback: asked once, when the provider rejected the request before its first word,
    for somebody else to answer. fold: everything heard so far. bytes_out: kept by the door, for the record.
    Leaving the block closes the upstream and writes the record. A cut raises its GatewayError there, except when
    the client is gone: then the block just ends, with `cut` set.
    """

    resumable: Final = False  # it ends with its process, unlike a run

    def __init__(
        self,
        call_id: str,
        attempt: Attempt,
        *,
        permit: Permit,
        limits: CallLimits,
        fallback: Callable[[Attempt], Attempt | None],
        on_end: Callable[[Call, SettledCall], None],
    ) -> None:
        self.id = call_id
        self.fold = AnswerFold()
        self.bytes_out = 0
        self.cut: Cut | None = None
        self._attempt = attempt
        self._permit = permit
        self._limits = limits
        self._fallback: Callable[[Attempt], Attempt | None] | None = fallback
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._opened = self._progress = self._loop.time()
        self._first: float | None = None
        self._unanswered: Usage | None = None  # what it consumed, if a failure came in place of the first word
        self._over = self._late = False
        self._labels: Labels | None = None
        self._stream = self._ask()
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def route(self) -> Route:
        return self._attempt.route

    @property
    def model(self) -> ModelSpec:
        """Who answers."""
        return self._attempt.route.model

    @property
    def request(self) -> ModelRequest:
        return self._attempt.route.request

    @property
    def _reservation(self) -> CallReservation:
        return self._attempt.reservation

    @property
    def bill(self) -> tuple[Usage, float | None]:
        """What it consumed and cost (USD, None: unknown). Only after the block has been left."""
        usage = self._usage()
        return usage, self._reservation.settle(usage)

    def interrupt(self, why: Cut) -> None:
        """End the call now, wherever its task is waiting; never from that task itself. The first reason stands;
        afterwards this does nothing.
        """
        if self.cut is None and self._task is not None:
            self.cut = why
            self._task.cancel()

    async def __aenter__(self) -> Call:
        self._task = asyncio.current_task()
        # By the loop, even if it is due: a task that cancels itself hears of it where it next waits, after the block
        # perhaps.
        self._timer = self._loop.call_at(self._due(), self._watch)
        return self

    def __aiter__(self) -> Call:
        return self

    async def __anext__(self) -> list[ModelEvent]:
        try:
            if self._first is None:
                self._late |= not await recorded(self._attempt.durable, must=self._reservation.budgeted)
            batch = await self._stream.__anext__()
        except StopAsyncIteration:
            self._heard_out()
            raise
        except GatewayError as failure:
            if self._first is not None or not self._fell_back(failure):
                raise
            return await self.__anext__()
        self._progress = self._loop.time()
        if self._first is None:
            self._first = self._progress
        if self._labels is not None:
            batch = self._labels.batch(batch)
        add = self.fold.add
        for event in batch:
            add(event)
        return batch

    def _heard_out(self) -> None:
        self._over = True
        if self.fold.stop is None:
            raise GatewayError(Reason.UPSTREAM_FAILED) from None
        # Before the caller hears the end: its next call must find the slot free, and the money.
        self._permit.release()
        self._reservation.settle(self._usage())

    async def answer(self) -> Answer:
        """The whole of it, when it is over: for whoever does not need the pieces. Inside the block."""
        async for _ in self:
            pass
        return self.fold.answer()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        assert task is not None
        if self._timer is not None:
            self._timer.cancel()
        self._permit.release()
        self._on_end(self, self._settled(error))
        await self._close_stream()
        return self.cut is not None and just_ends(self.cut, task, error)

    def _ask(self) -> Batches:
        route = self._attempt.route
        self._labels = Labels(route.asked.request, route.fitted) if route.request.tools else None
        return route.engine.call(route.request, deadline=self._opened + self._limits.overall)

    def _fell_back(self, failure: GatewayError) -> bool:
        """Whether somebody else is asked, after this in place of the first word."""
        following = None
        if failure.code is Code.UPSTREAM_REJECTED and self._fallback is not None:
            following, self._fallback = self._fallback(self._attempt), None
        if following is None:
            self._unanswered = usage_without_answer(failure)
            return False
        self._attempt = following
        self._stream = self._ask()
        return True

    async def _close_stream(self) -> None:
        """Close the upstream, whatever happens to this task meanwhile."""
        if self._over:
            return
        closing = asyncio.ensure_future(self._stream.aclose())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            if not closing.done():
                closing.add_done_callback(_forget)
            raise
        except Exception:  # how an upstream that nobody wants any more ends is nobody's business
            return

    def _due(self) -> float:
        return min(self._progress + self._limits.progress, self._opened + self._limits.overall)

    def _watch(self) -> None:
        """One timer for both limits, moved only when it rings: one per batch would cost as much as the batch."""
        due = self._due()
        if self._loop.time() >= due:
            self.interrupt(Cut.TIMED_OUT)
        else:
            self._timer = self._loop.call_at(due, self._watch)

    def _settled(self, error: BaseException | None) -> SettledCall:
        outcome, ended_by = self._ending(error)
        now = self._loop.time()
        usage = self._usage()
        return SettledCall(
            id=self.id,
            settled_at=time.time(),
            outcome=outcome,
            ended_by=ended_by,
            usage=usage,
            cost_usd=self._reservation.settle(usage),
            first_byte_seconds=None if self._first is None else self._first - self._opened,
            stream_seconds=None if self._first is None else now - self._first,
            bytes_out=self.bytes_out,
            partial=self.fold.stop is None,
            notes=self._notes(),
        )

    def _notes(self) -> dict[str, Any] | None:
        notes: dict[str, Any] = {}
        if self.fold.left_out:
            notes["left_out"] = list(self.fold.left_out)
        if self.fold.stop is StopReason.INCOMPLETE:
            notes["stopped"] = self.fold.stop_word or "unknown"
        if self._late:
            notes["recorded_late"] = True
        return notes or None

    def _ending(self, error: BaseException | None) -> tuple[str, EndedBy]:
        if self.fold.stop is StopReason.REFUSAL:
            return Code.REFUSED.value, "model"
        if self.fold.stop is not None and (error is None or self.cut is not None):
            return "ok", "model"
        return failing(self.cut, error)

    def _usage(self) -> Usage:
        if self._unanswered is not None:
            return self._unanswered
        # Who was cut before the first word may be billed for the prompt all the same.
        if self.fold.stop is None and (self._first is not None or self.cut is not None):
            return known_usage(self.request, self.fold.answer())
        usage = self.fold.usage
        if (
            self.fold.stop is not None
            and self._reservation.counts
            and None in (usage.input_tokens, usage.output_tokens)
        ):
            return known_usage(self.request, self.fold.answer())
        return usage


def usage_without_answer(error: BaseException) -> Usage:
    """What a call consumed whose provider said this instead of an answer: nothing, or nobody knows."""
    spared = isinstance(error, GatewayError) and (error.reason in _UNBILLED or error.code in _UNBILLED_CODES)
    return _NOTHING if spared else Usage()


def failing(cut: Cut | None, error: BaseException | None) -> tuple[str, EndedBy]:
    """Outcome, and who ended a call that did not come to its end."""
    if cut is not None:
        return _CUTS[cut][:2]
    if isinstance(error, GatewayError):
        return error.code.value, "model" if error.code in _PROVIDER_FAULTS else "gateway"
    if isinstance(error, asyncio.CancelledError):
        return Code.DRAINING.value, "gateway"
    return Code.INTERNAL.value, "gateway"


def just_ends(cut: Cut, task: asyncio.Task[object], error: BaseException | None) -> bool:
    """Leaving a block whose task was cancelled by a cut: whether nothing is raised. Raises the cut's GatewayError."""
    task.uncancel()
    if not isinstance(error, asyncio.CancelledError) or task.cancelling():
        return False  # something else went wrong as well, or the task itself is being cancelled: that counts
    reason = _CUTS[cut][2]
    if reason is None:
        return True
    raise GatewayError(reason) from None


def _forget(closing: asyncio.Future[None]) -> None:
    if not closing.cancelled():
        closing.exception()
