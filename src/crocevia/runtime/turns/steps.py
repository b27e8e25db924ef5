"""One try of one call of an agent's model: what is reported of it, what went wrong, what it cost."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.answers import Answer
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import StopReason
from crocevia.core.messages import Opaque, ToolCall
from crocevia.core.texts import render
from crocevia.core.turn import entries as e
from crocevia.core.turn.instance import Instance
from crocevia.core.usage import Usage
from crocevia.runtime.gateway import Call
from crocevia.runtime.turns.chat_sessions import now_ms
from crocevia.runtime.turns.signing import canonical

_AGAIN: Final = frozenset(
    {
        Code.RATE_LIMITED,
        Code.CONCURRENCY_LIMITED,
        Code.UPSTREAM_FAILED,
        Code.UPSTREAM_OVERLOADED,
        Code.UPSTREAM_TIMEOUT,
    }
)


class Bill(msgspec.Struct, frozen=True):
    """What a try consumed. cost_usd None: nobody knows, and `unpriced` says whose price it was."""

    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    unpriced: e.Unpriced | None = None


class Fault(msgspec.Struct, frozen=True):
    """Why a try failed. interrupted: it was stopped by us."""

    code: str
    message: str
    retryable: bool
    interrupted: bool = False


def fault_of(error: GatewayError) -> Fault:
    """What a failed try is journalled as."""
    return Fault(error.code.value, render(error.message, "en"), error.retryable or error.code in _AGAIN)


GONE: Final = Fault("agent_unavailable", "this agent is not in the team any more", False)
STOPPED: Final = Fault("interrupted", "", True, interrupted=True)
_GARBLED: Final = Fault("invalid_arguments", "the model called a tool with arguments that cannot be read", True)


class Step(msgspec.Struct, frozen=True):
    """One try of one call of an agent's model, and what can be reported of it."""

    turn: str
    instance: str
    step: int
    attempt: int

    def started(self) -> e.ModelStarted:
        return e.ModelStarted(turn=self.turn, at=now_ms(), instance=self.instance, step=self.step, attempt=self.attempt)

    def failed(self, fault: Fault, bill: Bill) -> e.ModelFailed:
        return e.ModelFailed(
            turn=self.turn,
            at=now_ms(),
            instance=self.instance,
            step=self.step,
            attempt=self.attempt,
            code=fault.code,
            message=fault.message,
            retryable=fault.retryable,
            interrupted=fault.interrupted,
            usage=bill.usage,
            cost_usd=bill.cost_usd,
            unpriced=bill.unpriced,
        )

    def answered(self, call: Call, bill: Bill) -> e.Entry:
        answer = call.fold.answer()
        if not all(_readable(asked) for asked in answer.tool_calls):
            return self.failed(_GARBLED, bill)
        return e.ModelAnswered(
            turn=self.turn,
            at=now_ms(),
            instance=self.instance,
            step=self.step,
            attempt=self.attempt,
            text=answer.text,
            reasoning=answer.reasoning,
            calls=answer.tool_calls,
            opaque=_opaque(answer),
            usage=bill.usage,
            cost_usd=bill.cost_usd,
            unpriced=bill.unpriced,
            stop=(answer.stop or StopReason.END).value,
        )


def _readable(asked: ToolCall) -> bool:
    try:
        return canonical(asked.arguments).startswith(b"{")
    except ValueError:
        return False


def _opaque(answer: Answer) -> Opaque | None:
    if not answer.blocks:
        return None
    blocks = b"[" + b",".join(bytes(piece.block) for piece in answer.blocks) + b"]"
    return Opaque(dialect=answer.blocks[0].dialect, blocks=msgspec.Raw(blocks), thinks=bool(answer.reasoning))


def bill_of(call: Call | None, instance: Instance) -> Bill:
    """What the call consumed; one that was never admitted, or whose engine is ours, costs nothing."""
    if call is None:
        return Bill()
    usage, cost_usd = call.bill
    if instance.card.free or cost_usd is not None:
        return Bill(usage, 0.0 if instance.card.free else cost_usd)
    return Bill(usage, None, e.Unpriced(call.model.name, call.model.engine, call.model.upstream))
