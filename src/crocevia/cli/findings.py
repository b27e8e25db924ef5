"""What a look at something found."""

from __future__ import annotations

from typing import Literal

import msgspec

from crocevia.cli import i18n
from crocevia.cli.i18n import Line, line
from crocevia.core.errors import Sentence


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one check of `crocevia doctor` found."""

    level: Literal["ok", "warn", "bad"]
    area: str
    """What was looked at."""
    message: Line | Sentence
    hint: Line | Sentence | None = None
    """What to do about it."""


def ok(area: str, key: str, /, **details: str | int | float) -> Finding:
    """All is well."""
    return Finding(level="ok", area=area, message=line(key, **details))


def warn(area: str, key: str, /, **details: str | int | float) -> Finding:
    """It works, but somebody should know."""
    return _wrong("warn", area, line(key, **details))


def bad(area: str, key: str, /, **details: str | int | float) -> Finding:
    """It does not work."""
    return _wrong("bad", area, line(key, **details))


def failed(area: str, message: Sentence) -> Finding:
    """It does not work, and an error said why."""
    return _wrong("bad", area, message)


def _wrong(level: Literal["warn", "bad"], area: str, message: Line | Sentence) -> Finding:
    return Finding(level=level, area=area, message=message, hint=i18n.hint(message))
