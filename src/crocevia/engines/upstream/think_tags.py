"""Models that think aloud in their text: `<think>…</think>` before the answer belongs to the reasoning."""

from __future__ import annotations

from typing import Final

from crocevia.core.events import ModelEvent, ReasoningDelta, Stopped, TextDelta, ToolCallStarted

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


class ThinkTags:
    """One answer's events. Only what the answer begins with is thought; the words are free to be written later."""

    def __init__(self) -> None:
        self._held = ""
        self._read = self._before

    def told_apart(self, events: list[ModelEvent]) -> list[ModelEvent]:
        """The events with thoughts as reasoning; what may be the beginning of a tag is held until it is decided."""
        out: list[ModelEvent] = []
        for event in events:
            if type(event) is TextDelta:
                self._held += event.text
                self._read(out)
            else:
                if isinstance(event, ToolCallStarted | Stopped):
                    self._release(out)
                out.append(event)
        return out

    def _before(self, out: list[ModelEvent]) -> None:
        begun = self._held.lstrip()
        if begun.startswith(_OPEN):
            self._held = begun[len(_OPEN) :]
            self._read = self._inside
            self._inside(out)
        elif not _OPEN.startswith(begun):
            self._read = self._said
            self._said(out)

    def _inside(self, out: list[ModelEvent]) -> None:
        thought, closed, rest = self._held.partition(_CLOSE)
        if not closed:
            kept = _overlap(thought)
            thought, rest = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            out.append(ReasoningDelta(thought))
        self._held = rest
        if closed:
            self._read = self._after
            self._after(out)

    def _after(self, out: list[ModelEvent]) -> None:
        self._held = self._held.lstrip()
        if self._held:
            self._read = self._said
            self._said(out)

    def _said(self, out: list[ModelEvent]) -> None:
        out.append(TextDelta(self._held))
        self._held = ""

    def _release(self, out: list[ModelEvent]) -> None:
        """Nothing decides it any more."""
        held, self._held = self._held, ""
        if held:
            out.append(ReasoningDelta(held) if self._read == self._inside else TextDelta(held))


def _overlap(text: str) -> int:
    """How many characters at the end of `text` may begin the closing tag."""
    return next((size for size in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:size])), 0)
