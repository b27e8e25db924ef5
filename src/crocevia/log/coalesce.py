"""Merging deltas before they get a seq: the first token at once, then one entry per 25 ms or 4 KiB."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

WINDOW: Final = 0.025  # seconds
SIZE: Final = 4096  # bytes of UTF-8, about: counted in characters until one is not ASCII

Kind = Literal["text", "reasoning"]


class Piece(NamedTuple):
    """A delta of one kind."""

    kind: Kind
    text: str


class Coalescer:
    """One per model call. Pure: the caller owns the clock (seconds, monotonic) and sends what it is given.

    `due` is when `flush` must be called at the latest, None when nothing is held. Call `flush` before any other
    entry of the same instance is reported.
    """

    __slots__ = ("_bytes", "_kind", "_parts", "_seen", "due")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._bytes = 0
        self._kind: Kind = "text"
        self._seen: set[Kind] = set()
        self.due: float | None = None

    def add(self, kind: Kind, text: str, now: float) -> list[Piece]:
        """Take a delta; what must go out now, in order."""
        if not text:
            return []
        out = self.flush() if kind != self._kind else []
        self._kind = kind
        self._parts.append(text)
        self._bytes += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self.due is None:
            self.due = now + WINDOW
        if kind not in self._seen or self._bytes >= SIZE or now >= self.due:
            self._seen.add(kind)
            out += self.flush()
        return out

    def flush(self) -> list[Piece]:
        """What is held, as one piece; nothing is held afterwards."""
        if not self._parts:
            return []
        piece = Piece(self._kind, "".join(self._parts))
        self._parts, self._bytes, self.due = [], 0, None
        return [piece]
