"""Numbers, money, times and sizes as a language writes them. None is «unknown», never zero."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from crocevia.core.limits import KIB, MIB
from crocevia.core.texts import Language

UNKNOWN: Final = "—"
_ITALIAN: Final = str.maketrans(",.", ".,")
_MONTHS: Final[dict[Language, tuple[str, ...]]] = {
    "it": ("gen", "feb", "mar", "apr", "mag", "giu", "lug", "ago", "set", "ott", "nov", "dic"),
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
}
_PERCENT: Final[dict[Language, str]] = {"it": "\u00a0%", "en": "%"}
_LARGEST_DATE: Final = 4e10


def number(value: float | None, language: Language, places: int = 0) -> str:
    """`12345.6` is `12.346` in Italian and `12,346` in English."""
    if value is None:
        return UNKNOWN
    text = f"{value:,.{places}f}"
    return text.translate(_ITALIAN) if language == "it" else text


def money(value: float | None, language: Language) -> str:
    """USD, with as many decimals as a small amount needs."""
    if value is None:
        return UNKNOWN
    places = 2 if value == 0 or abs(value) >= 1 else 4 if abs(value) >= 0.001 else 6
    return f"{number(value, language, places)}\u00a0USD"


def share(value: float | None, language: Language) -> str:
    """A rate from 0 to 1 as a percentage."""
    return UNKNOWN if value is None else f"{number(value * 100, language, 1)}{_PERCENT[language]}"


def duration(seconds: float | None, language: Language) -> str:
    """Milliseconds below one second, then seconds, then minutes."""
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{number(seconds * 1000, language)} ms"
    if seconds < 120:
        return f"{number(seconds, language, 1)} s"
    return f"{number(seconds / 60, language, 1)} min"


def size(count: int | None, language: Language) -> str:
    """Bytes, KB or MB."""
    if count is None:
        return UNKNOWN
    if count < KIB:
        return f"{number(count, language)} B"
    unit, name = (KIB, "KB") if count < MIB else (MIB, "MB")
    return f"{number(count / unit, language, 0 if count % unit == 0 else 1)} {name}"


def when(at: float | None, language: Language) -> str:
    """A moment in UTC, for where no script turns it into the reader's own time."""
    if at is None:
        return UNKNOWN
    moment = _moment(at)
    month = _MONTHS[language][moment.month - 1]
    day = f"{moment.day} {month}" if language == "it" else f"{month} {moment.day}"
    return f"{day}, {moment:%H:%M:%S} UTC"


def iso(at: float | None) -> str:
    """For `<time datetime>`."""
    return "" if at is None else f"{_moment(at):%Y-%m-%dT%H:%M:%SZ}"


def change(now: float | None, before: float | None, language: Language) -> str | None:
    """`+12 %` against the period before; None if there is nothing to compare with."""
    if now is None or not before:
        return None
    ratio = (now - before) / before
    etag = "+" if ratio > 0 else "−" if ratio < 0 else "±"
    return f"{etag}{number(abs(ratio) * 100, language)}{_PERCENT[language]}"


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(min(max(at, 0.0), _LARGEST_DATE), UTC)
