"""What a model says while it answers: the one vocabulary between engines and everything above them.

An engine yields batches (lists) of these, one batch per upstream read, so that a door can answer with one
write per read. Order within a call: any mix of deltas, tool calls and provider blocks; `UsageReported` any
number of times (cumulative); exactly one `Stopped`, last. A failure is a raised `GatewayError`, never an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec
from msgspec import Raw

from crocevia.core.messages import ToolCall
from crocevia.core.usage import Usage


class StopReason(StrEnum):
    """Why a model stopped."""

    END = "end"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    INCOMPLETE = "incomplete"
    """The provider stopped for a reason that is not known here: what was said stands, and need not be all of it."""


CUT_SHORT: Final = frozenset({StopReason.MAX_TOKENS, StopReason.INCOMPLETE})
"""The answer ends where the model had not."""
TRUNCATING: Final = CUT_SHORT | {StopReason.REFUSAL}
"""A tool call may be unfinished."""


class TextDelta(msgspec.Struct, frozen=True):
    """More of the answer's text."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True):
    """raw: the thoughts themselves, where a provider tells them apart from what it says about them."""

    text: str
    raw: bool = False


class RefusalDelta(msgspec.Struct, frozen=True):
    """A piece of the sentence with which the model refuses. It is no answer; `Stopped` says REFUSAL."""

    text: str


class Cited(msgspec.Struct, frozen=True):
    """What was said from `start` to `end` (characters of the answer's text) rests on a page."""

    url: str
    title: str
    start: int
    end: int


class ToolCallStarted(msgspec.Struct, frozen=True):
    """`index` counts the tool calls of this answer from 0."""

    index: int
    id: str
    name: str


class ToolCallDelta(msgspec.Struct, frozen=True):
    """More of a call's arguments, as JSON text that is whole only at the end."""

    index: int
    fragment: str


class ToolCallDone(msgspec.Struct, frozen=True):
    """The call is complete and its arguments are a JSON object; emitted once per call, only then."""

    index: int
    call: ToolCall


class ProviderBlock(msgspec.Struct, frozen=True):
    """One piece of the answer exactly as the provider spelled it; must travel back untouched, in this order."""

    dialect: str
    block: Raw
    thinks: bool = False
    """It is a piece of reasoning."""


class UsageReported(msgspec.Struct, frozen=True):
    """Tokens so far, as the provider counts them; what a later one names replaces it."""

    usage: Usage


class ParametersLeftOut(msgspec.Struct, frozen=True):
    """Fields of `Sampling` that this model does not support; the call went on without them."""

    names: tuple[str, ...]


class Stopped(msgspec.Struct, frozen=True):
    """The model's end of the answer."""

    reason: StopReason
    word: str = ""
    """With INCOMPLETE: the provider's own word for its reason, if it is one."""


ModelEvent: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | RefusalDelta
    | Cited
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallDone
    | ProviderBlock
    | UsageReported
    | ParametersLeftOut
    | Stopped
)

DELTA_CHARACTERS: Final = 10_000
"""Of one delta on a wire: each takes at most six bytes there, and some readers give up at lines of 64 KiB."""


def pieces(text: str) -> list[str]:
    """The text in deltas that any reader takes."""
    if len(text) <= DELTA_CHARACTERS:
        return [text]
    return [text[start : start + DELTA_CHARACTERS] for start in range(0, len(text), DELTA_CHARACTERS)]


def is_silent(batch: Sequence[object]) -> bool:
    """Nothing of the answer is in it, only figures about it: a failure after that is still an honest status."""
    return all(type(event) in _ABOUT for event in batch)


_ABOUT: Final = frozenset({UsageReported, ParametersLeftOut})
