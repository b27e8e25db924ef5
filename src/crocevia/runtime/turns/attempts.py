"""One attempt at one call of an agent's model: what is reported of it, what went wrong, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

import msgspec

from crocevia.core.answers import Answer
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import StopReason
from crocevia.core.ids import ulid
from crocevia.core.messages import ProviderBlocks, ToolCall
from crocevia.core.texts import render
from crocevia.core.turn import entries as e
from crocevia.core.turn.closing import LARGEST_TEXT
from crocevia.core.turn.instance import Instance
from crocevia.core.usage import Usage
from crocevia.runtime.gateway import Call
from crocevia.runtime.turns.signing import canonical

FIRST_BACKOFF: Final = 0.25  # seconds before the second attempt, then twice as long each time
MAX_BACKOFF: Final = 20.0

_RETRYABLE: Final = frozenset(
    {
        Code.RATE_LIMITED,
        Code.CONCURRENCY_LIMITED,
        Code.UPSTREAM_FAILED,
        Code.UPSTREAM_OVERLOADED,
        Code.UPSTREAM_TIMEOUT,
    }
)


class CallCost(msgspec.Struct, frozen=True):
    """What an attempt consumed."""

    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    """None: unknown."""
    unpriced: e.Unpriced | None = None
    """Whose price is missing, where the cost is unknown."""


class Fault(msgspec.Struct, frozen=True):
    """Why an attempt failed."""

    code: str
    message: str
    retryable: bool
    interrupted: bool = False
    """It was stopped from here, which says nothing about the model."""


def fault_of(error: GatewayError) -> Fault:
    """What a failed attempt is journalled as. What is known to fail again until later is not tried again."""
    soon = (error.retry_after or 0) <= MAX_BACKOFF
    retryable = soon and (error.retryable or error.code in _RETRYABLE)
    return Fault(error.code.value, render(error.message, "en"), retryable)


AGENT_GONE: Final = Fault("agent_unavailable", "this agent is not in the team any more", False)
INTERRUPTED: Final = Fault("interrupted", "", True, interrupted=True)


class ModelAttempt(msgspec.Struct, frozen=True):
    """One attempt at one call of an agent's model, and the entries that report it."""

    turn: str
    instance: str
    step: int
    attempt: int
    now: Callable[[], int]
    """Milliseconds UTC, as the turn counts them."""
    call: str
    """The id of its call's record."""

    def started(self) -> e.ModelStarted:
        return e.ModelStarted(
            turn=self.turn,
            at=self.now(),
            instance=self.instance,
            step=self.step,
            attempt=self.attempt,
            call=self.call,
        )

    def failed(self, fault: Fault, cost: CallCost, pause: float | None = None) -> e.ModelFailed:
        """pause: seconds until the next attempt, where this failure says so."""
        at = self.now()
        return e.ModelFailed(
            turn=self.turn,
            at=at,
            retry_at=None if pause is None else at + int(pause * 1000),
            instance=self.instance,
            step=self.step,
            attempt=self.attempt,
            code=fault.code,
            message=fault.message,
            retryable=fault.retryable,
            interrupted=fault.interrupted,
            usage=cost.usage,
            cost_usd=cost.cost_usd,
            unpriced=cost.unpriced,
        )

    def answered(self, call: Call, cost: CallCost, broken: str | None, callers: Container[str]) -> e.ModelAnswered:
        """broken: the tool whose call ended the answer because its arguments could not be read. callers: the tools
        whose calls are handed over as they came.
        """
        answer = call.fold.answer()
        calls, unreadable = _readable_calls(answer.tool_calls, broken, callers)
        return e.ModelAnswered(
            turn=self.turn,
            at=self.now(),
            instance=self.instance,
            step=self.step,
            attempt=self.attempt,
            text=answer.text,
            reasoning=answer.reasoning,
            calls=calls,
            unreadable=unreadable,
            provider_blocks=None if unreadable else _provider_blocks(answer),
            usage=cost.usage,
            cost_usd=cost.cost_usd,
            unpriced=cost.unpriced,
            stop=(answer.stop or (StopReason.END if broken is None else StopReason.TOOL_USE)).value,
        )


def _readable_calls(
    calls: tuple[ToolCall, ...], broken: str | None, callers: Container[str]
) -> tuple[tuple[ToolCall, ...], tuple[int, ...]]:
    """The calls as every engine takes them back, and the places of those that cannot be made: their arguments were no
    JSON object, or more than an event can hold.
    """
    if broken is not None:
        lost = ToolCall(id=f"call_{ulid().lower()}", name=broken, arguments=msgspec.Raw())
        calls = (*calls, lost)
    places = tuple(place for place, call in enumerate(calls) if call.name not in callers and not _is_object(call))
    empty = msgspec.Raw(b"{}")
    mended = [
        msgspec.structs.replace(tool_call, arguments=empty) if place in places else tool_call
        for place, tool_call in enumerate(calls)
    ]
    return tuple(mended), places


def _is_object(tool_call: ToolCall) -> bool:
    if len(tool_call.arguments) > LARGEST_TEXT:
        return False
    try:
        return canonical(tool_call.arguments).startswith(b"{")
    except ValueError:
        return False


def _provider_blocks(answer: Answer) -> ProviderBlocks | None:
    if not answer.blocks:
        return None
    blocks = b"[" + b",".join(bytes(piece.block) for piece in answer.blocks) + b"]"
    return ProviderBlocks(dialect=answer.blocks[0].dialect, blocks=msgspec.Raw(blocks), thinks=bool(answer.reasoning))


def cost_of(call: Call | None, instance: Instance) -> CallCost:
    """What the call consumed; one that was never admitted, or whose engine is free, costs nothing."""
    if call is None:
        return CallCost()
    usage, cost_usd = call.bill
    if instance.card.free or cost_usd is not None:
        return CallCost(usage, 0.0 if instance.card.free else cost_usd)
    return CallCost(usage, None, e.Unpriced(call.model.name, call.model.engine, call.model.upstream))
