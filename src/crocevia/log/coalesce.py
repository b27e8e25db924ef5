"""Merging deltas before they get a seq: the first token at once, then one entry per 25 ms or 4 KiB.

An answer that goes on for more than a second is told ten times a second: every entry has a seq, a cursor cannot skip
one, and clients need milliseconds for each when they read it again.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from crocevia.core.turn.entries import DELTA_CHARACTERS

WINDOW: Final = 0.025  # seconds
BEGINNING: Final = 1.0  # seconds
STEADY: Final = 0.1  # seconds, after the beginning
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

    __slots__ = ("_began", "_bytes", "_kind", "_parts", "_seen", "due")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._bytes = 0
        self._kind: Kind = "text"
        self._seen: set[Kind] = set()
        self._began: float | None = None
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
            self._began = now if self._began is None else self._began
            self.due = now + (WINDOW if now - self._began < BEGINNING else STEADY)
        if kind not in self._seen or self._bytes >= SIZE or now >= self.due:
            self._seen.add(kind)
            out += self.flush()
        return out

    def flush(self) -> list[Piece]:
        """What is held, as one piece, or more if a provider said much at once; nothing is held afterwards."""
        text, kind = "".join(self._parts), self._kind
        self._parts, self._bytes, self.due = [], 0, None
        starts = range(0, len(text), DELTA_CHARACTERS)
        return [Piece(kind, text[start : start + DELTA_CHARACTERS]) for start in starts]
