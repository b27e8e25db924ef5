"""What a look at something found."""

from __future__ import annotations

from typing import Literal

import msgspec

from crocevia.core.errors import Sentence
from crocevia.core.texts import sentences


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """area: what was looked at. hint: what to do about it."""

    level: Literal["ok", "warn", "bad"]
    area: str
    message: Sentence
    hint: Sentence | None = None


def line(key: str, **details: str | int | float) -> Sentence:
    """A sentence of the command line's own."""
    return Sentence(key, dict(details))


def ok(area: str, sentence: str, **args: str | int | float) -> Finding:
    """All is well."""
    return Finding(level="ok", area=area, message=Sentence(sentence, dict(args)))


def warn(area: str, sentence: str, **args: str | int | float) -> Finding:
    """It works, but somebody should know."""
    return _wrong("warn", area, Sentence(sentence, dict(args)))


def bad(area: str, sentence: str, **args: str | int | float) -> Finding:
    """It does not work."""
    return _wrong("bad", area, Sentence(sentence, dict(args)))


def failed(area: str, message: Sentence) -> Finding:
    """It does not work, and an error said why."""
    return _wrong("bad", area, message)


def _wrong(level: Literal["warn", "bad"], area: str, message: Sentence) -> Finding:
    hint = Sentence(f"hint_{message.reason}", message.details)
    return Finding(level=level, area=area, message=message, hint=hint if hint.reason in sentences("en") else None)
