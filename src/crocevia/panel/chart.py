"""Coordinates of a bar chart, for a template that draws it as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

WIDTH: Final = 720
HEIGHT: Final = 160
_GAP: Final = 0.28  # of a bar's place


class Mark(msgspec.Struct, frozen=True):
    """A bar from the ground up, and the part of it that failed. Pixels."""

    x: float
    width: float
    y: float
    height: float
    failed: float


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """top: the value of the highest line. peak: index of the highest bar, None if all are empty."""

    marks: list[Mark]
    top: int
    peak: int | None
    width: int = WIDTH
    height: int = HEIGHT


def bars(values: Sequence[int], failed: Sequence[int]) -> Chart:
    """Bars that start at zero."""
    largest = max(values, default=0)
    top = _rounded(largest)
    place = WIDTH / max(1, len(values))
    marks = [
        Mark(
            x=round(index * place + place * _GAP / 2, 2),
            width=round(place * (1 - _GAP), 2),
            y=round(HEIGHT - HEIGHT * value / top, 2),
            height=round(HEIGHT * value / top, 2),
            failed=round(HEIGHT * bad / top, 2),
        )
        for index, (value, bad) in enumerate(zip(values, failed, strict=True))
    ]
    return Chart(marks=marks, top=top, peak=list(values).index(largest) if largest else None)


def _rounded(value: int) -> int:
    """The next 1, 2 or 5 times a power of ten."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step >= value:
                return factor * step
        step *= 10
