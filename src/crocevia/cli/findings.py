"""What a look at something found."""

from __future__ import annotations

from typing import Literal

import msgspec

from crocevia.core.errors import Message
from crocevia.core.texts import sentences


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """area: what was looked at. hint: what to do about it."""

    level: Literal["ok", "warn", "bad"]
    area: str
    message: Message
    hint: Message | None = None


def ok(area: str, sentence: str, **args: str | int | float) -> Finding:
    """All is well."""
    return Finding(level="ok", area=area, message=Message(sentence, dict(args)))


def warn(area: str, sentence: str, **args: str | int | float) -> Finding:
    """It works, but somebody should know."""
    return _wrong("warn", area, Message(sentence, dict(args)))


def bad(area: str, sentence: str, **args: str | int | float) -> Finding:
    """It does not work."""
    return _wrong("bad", area, Message(sentence, dict(args)))


def failed(area: str, message: Message) -> Finding:
    """It does not work, and an error said why."""
    return _wrong("bad", area, message)


def _wrong(level: Literal["warn", "bad"], area: str, message: Message) -> Finding:
    hint = Message(f"hint_{message.key}", message.args)
    return Finding(level=level, area=area, message=message, hint=hint if hint.key in sentences("en") else None)
