"""The constrained answer, decoded as it comes: `{"reply": TEXT}` or `{"name": TOOL, "arguments": {...}}`. Pure.

The first key decides. A reply's text is un-escaped and given out piece by piece; a call only once it is complete.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw

from crocevia.core.messages import ToolCall
from crocevia.engines.upstream.errors import UNREADABLE

_HEAD = re.compile(r'\s*\{\s*"(name|reply)"\s*:\s*("?)')
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_PLAIN = re.compile(r'[^"\\]*')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_REPLACEMENT = "\ufffd"


class _Call(msgspec.Struct):
    name: str
    arguments: Raw


class ReplyDecoder:
    """Feed pieces of the answer, get pieces of text; at the end ask for the call."""

    __slots__ = ("_closed", "_held", "_high", "_kind")

    def __init__(self) -> None:
        self._held = ""
        self._kind = ""
        self._high = 0
        self._closed = False

    def feed(self, piece: str) -> str:
        """The text that `piece` adds; empty while it is not decided, and for a call."""
        self._held += piece
        if not self._kind and (head := _HEAD.match(self._held)) is not None and head[2]:
            self._kind = head[1]
            if self._kind == "reply":
                self._held = self._held[head.end() :]
        return self._text() if self._kind == "reply" else ""

    @property
    def speaks(self) -> bool:
        """It is a reply, and no call."""
        return self._kind == "reply"

    def flush(self) -> str:
        """At the end of a cut answer: what an unpaired surrogate still held back."""
        high, self._high = self._high, 0
        return _REPLACEMENT if high else ""

    def call(self, id: str) -> ToolCall | None:
        """The call, if the answer is one and is complete."""
        if self._kind != "name":
            return None
        try:
            found = msgspec.json.decode(self._held, type=_Call)
        except UNREADABLE:
            return None
        # A copy: Raw would keep the whole answer alive through its buffer.
        arguments = Raw(bytes(found.arguments).strip())
        return ToolCall(id=id, name=found.name, arguments=arguments) if bytes(arguments)[:1] == b"{" else None

    def _text(self) -> str:
        held, at = self._held, 0
        out: list[str] = []
        while not self._closed and at < len(held):
            if held[at] == "\\":
                used = self._escape(held, at, out)
                if not used:
                    break
                at += used
            elif held[at] == '"':
                out.append(self.flush())
                self._closed = True
            else:
                end = _PLAIN.match(held, at).end()  # type: ignore[union-attr]  # matches the empty string too
                out.append(self.flush())
                out.append(held[at:end])
                at = end
        self._held = "" if self._closed else held[at:]
        return "".join(out)

    def _escape(self, held: str, at: int, out: list[str]) -> int:
        """Decode the escape at `at` into `out`: its length, or 0 while it is incomplete."""
        letter = held[at + 1 : at + 2]
        if letter == "u":
            digits = held[at + 2 : at + 6]
            if len(digits) < 4:
                return 0
            self._unit(int(digits, 16) if _HEX.fullmatch(digits) else ord(_REPLACEMENT), out)
            return 6
        if letter:
            out.append(self.flush())
            out.append(_ESCAPES.get(letter, letter))
            return 2
        return 0

    def _unit(self, unit: int, out: list[str]) -> None:
        """One UTF-16 unit: halves of a pair wait for each other, lonely ones become the replacement character."""
        high, self._high = self._high, 0
        if 0xDC00 <= unit < 0xE000:
            out.append(chr(0x10000 + ((high - 0xD800) << 10) + unit - 0xDC00) if high else _REPLACEMENT)
            return
        if high:
            out.append(_REPLACEMENT)
        if 0xD800 <= unit < 0xDC00:
            self._high = unit
        else:
            out.append(chr(unit))
