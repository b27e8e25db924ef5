"""Characters beyond U+FFFF that a provider cut in two: JSON spells them as two escapes, one of which may come later.

Alone, neither half is text, and no JSON decoder takes it. `mended` spells each as one character of a private range
that nobody uses, `Halves` puts what belongs together together again, and what stays alone becomes U+FFFD.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import Raw

from crocevia.core.events import (
    ModelEvent,
    ProviderBlock,
    ReasoningDelta,
    RefusalDelta,
    Stopped,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
)

_BASE: Final = 0x10F800 - 0xD800  # exactly as many characters as there are halves
_HIGH: Final = f"[{chr(0xD800 + _BASE)}-{chr(0xDBFF + _BASE)}]"
_LOW: Final = f"[{chr(0xDC00 + _BASE)}-{chr(0xDFFF + _BASE)}]"
_ENDS_HIGH: Final = re.compile(f"{_HIGH}\\Z")
_HALVES: Final = re.compile(f"({_HIGH})({_LOW})|{_HIGH}|{_LOW}")
# Pairs and all other escapes are taken, too, so that the second half of `\\\\` never begins one.
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_REPLACEMENT: Final = "\ufffd"

_Delta = TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta


def mended(data: bytes) -> bytes:
    """JSON that a decoder takes, where lonely halves were all that was wrong with it."""
    return _ESCAPE.sub(_stand_in, data) if b"\\u" in data else data


def without(data: bytes) -> bytes:
    """The same, with U+FFFD for every lonely half: for what no later piece can complete."""
    found = mended(data)
    return data if found is data else joined(found.decode()).encode()


def joined(text: str) -> str:
    """Stand-ins that follow each other as their character, the others as U+FFFD."""
    return _HALVES.sub(_character, text)


class Halves:
    """One answer's events, once a half was seen in it."""

    def __init__(self) -> None:
        self._held: dict[tuple[object, ...], tuple[_Delta, str]] = {}

    def settled(self, events: list[ModelEvent]) -> list[ModelEvent]:
        """The events with every half joined, replaced, or (at the end of a delta) held until the next of its kind."""
        out: list[ModelEvent] = []
        for event in events:
            if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta):
                self._delta(event, out)
            else:
                if isinstance(event, Stopped | ToolCallDone):
                    self._release(event, out)
                out.append(_whole(event))
        return out

    def _delta(self, event: _Delta, out: list[ModelEvent]) -> None:
        channel = _channel(event)
        _, before = self._held.pop(channel, (event, ""))
        text = before + _text(event)
        if _ENDS_HIGH.search(text):
            self._held[channel] = (event, text[-1])
            text = text[:-1]
        if text:
            out.append(_with(event, joined(text)))

    def _release(self, event: Stopped | ToolCallDone, out: list[ModelEvent]) -> None:
        """Nothing follows: what was held is alone."""
        for channel, (delta, _) in tuple(self._held.items()):
            if isinstance(event, Stopped) or channel == (ToolCallDelta, event.index):
                del self._held[channel]
                out.append(_with(delta, _REPLACEMENT))


def _channel(event: _Delta) -> tuple[object, ...]:
    if isinstance(event, ToolCallDelta):
        return (ToolCallDelta, event.index)
    return (type(event), isinstance(event, ReasoningDelta) and event.raw)


def _text(event: _Delta) -> str:
    return event.fragment if isinstance(event, ToolCallDelta) else event.text


def _with(event: _Delta, text: str) -> _Delta:
    return msgspec.structs.replace(event, **{"fragment" if isinstance(event, ToolCallDelta) else "text": text})


def _whole(event: ModelEvent) -> ModelEvent:
    """What comes in one piece."""
    if isinstance(event, ProviderBlock):
        return msgspec.structs.replace(event, block=Raw(joined(bytes(event.block).decode()).encode()))
    if isinstance(event, ToolCallStarted):
        return msgspec.structs.replace(event, id=joined(event.id), name=joined(event.name))
    if isinstance(event, ToolCallDone):
        call = event.call
        arguments = Raw(joined(bytes(call.arguments).decode()).encode())
        call = msgspec.structs.replace(call, id=joined(call.id), name=joined(call.name), arguments=arguments)
        return msgspec.structs.replace(event, call=call)
    return event


def _stand_in(found: re.Match[bytes]) -> bytes:
    lonely = found[1]
    return found[0] if lonely is None else chr(int(lonely, 16) + _BASE).encode()


def _character(found: re.Match[str]) -> str:
    high, low = found[1], found[2]
    if high is None:
        return _REPLACEMENT
    return chr(0x10000 + ((ord(high) - _BASE - 0xD800) << 10) + ord(low) - _BASE - 0xDC00)
