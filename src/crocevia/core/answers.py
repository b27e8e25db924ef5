"""Pure folds over a call's events. A non-streaming answer is nothing but this."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from crocevia.core.events import (
    ModelEvent,
    ParametersLeftOut,
    ProviderBlock,
    ReasoningDelta,
    RefusalDelta,
    Stopped,
    StopReason,
    TextDelta,
    ToolCallDone,
    UsageReported,
)
from crocevia.core.messages import ToolCall
from crocevia.core.usage import Usage


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A finished (or cut: `stop is None`) answer. `blocks` are the provider blocks in order."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    """The sentence with which the model refused, which is not part of the text."""
    tool_calls: tuple[ToolCall, ...] = ()
    blocks: tuple[ProviderBlock, ...] = ()
    usage: Usage = Usage()
    stop: StopReason | None = None


class AnswerFold:
    """Accumulates events; `answer()` may be read at any moment. The only state a call needs."""

    __slots__ = (
        "_blocks",
        "_calls",
        "_reasoning",
        "_refusal",
        "_text",
        "left_out",
        "stop",
        "stop_word",
        "thinks",
        "usage",
    )

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[ToolCall] = []
        self._blocks: list[ProviderBlock] = []
        self.usage = Usage()
        self.stop: StopReason | None = None
        self.stop_word = ""
        self.left_out: tuple[str, ...] = ()
        self.thinks = False

    def add(self, event: ModelEvent) -> None:
        kind = type(event)
        if kind is TextDelta:
            self._text.append(event.text)  # type: ignore[union-attr]  # narrowed by `kind`: isinstance costs per token
        elif isinstance(event, ToolCallDone):
            self._calls.append(event.call)
        elif isinstance(event, UsageReported):
            self.usage = self.usage.updated(event.usage)
        elif isinstance(event, Stopped):
            self.stop = event.reason
            self.stop_word = event.word
        elif isinstance(event, ProviderBlock):
            self._blocks.append(event)
            self.thinks = self.thinks or event.thinks
        else:
            self._add_beside(event)

    def _add_beside(self, event: ModelEvent) -> None:
        """What stands beside the answer."""
        if isinstance(event, ReasoningDelta):
            self._reasoning.append(event.text)
        elif isinstance(event, RefusalDelta):
            self._refusal.append(event.text)
        elif isinstance(event, ParametersLeftOut):
            self.left_out = event.names

    def answer(self) -> Answer:
        return Answer(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            refusal="".join(self._refusal),
            tool_calls=tuple(self._calls),
            blocks=tuple(self._blocks),
            usage=self.usage,
            stop=self.stop,
        )


def fold(events: Iterable[ModelEvent]) -> Answer:
    """The answer that these events spell."""
    state = AnswerFold()
    for event in events:
        state.add(event)
    return state.answer()
