"""What Crocevia promises of its speed: each figure with the bar it must not miss and the goal it should reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from .figures import Result, added, per_unit, ratio
from .servers import AGENT, CHAT, RESPONSES


class Compared(NamedTuple):
    """A door's figures, with what they are compared to: the floor (nginx) and asking the mock directly."""

    own: Result
    floor: Result | None
    direct: Result


class Bar(NamedTuple):
    """first None: there is only a goal. digits: after the point."""

    what: str
    door: str
    first: float | None
    goal: float
    read: Callable[[Compared], float | None]
    digits: int = 0


def _request(each: Compared) -> float | None:
    return per_unit(each.own.whole.get(64), streamed=False)


def _times_floor(each: Compared) -> float | None:
    return ratio(each.own.whole.get(64), each.floor.whole.get(64) if each.floor else None, streamed=False)


def _token(each: Compared) -> float | None:
    return per_unit(each.own.streamed.get(256), streamed=True)


def _added(each: Compared) -> float | None:
    return added(each.own, each.direct, streamed=False, which=50)


def _first_token(each: Compared) -> float | None:
    return added(each.own, each.direct, streamed=True, which=50)


BARS: Final = (
    *(
        bar
        for door in (AGENT, CHAT)
        for bar in (
            Bar("us CPU/request, 64 at a time", door, 350, 173, _request),
            Bar("× nginx, 64 at a time", door, None, 8, _times_floor, 1),
        )
    ),
    Bar("us CPU/request, 64 at a time", RESPONSES, 3000, 600, _request),
    *(Bar("us CPU/token, 256 at a time", door, 60, 35, _token, 1) for door in (AGENT, CHAT, RESPONSES)),
    *(
        bar
        for door in (AGENT, CHAT)
        for bar in (
            Bar("ms added, one at a time, p50", door, 1, 0.4, _added, 2),
            Bar("ms added to the first token, one at a time, p50", door, 2, 0.6, _first_token, 2),
        )
    ),
    Bar("idle PSS MiB", AGENT, 90, 70, lambda each: each.own.idle_mib),
    Bar("s to the first 200", AGENT, 1.5, 0.7, lambda each: each.own.target.cold_start, 2),
)


def verdict(bar: Bar, measured: float | None) -> str:
    """`goal`, `bar`, or `missed`; where there is only a goal, `not yet`."""
    if measured is None:
        return "-"
    if measured <= bar.goal:
        return "goal"
    if bar.first is None:
        return "not yet"
    return "bar" if measured <= bar.first else "missed"


def rows(doors: Mapping[str, Result], floor: Result | None, direct: Result) -> list[list[str]]:
    """One row per bar of the doors that were measured."""
    found = []
    for bar in BARS:
        own = doors.get(bar.door)
        if own is None:
            continue
        measured = bar.read(Compared(own, floor, direct))
        shown = "-" if measured is None else f"{measured:.{bar.digits}f}"
        first = "-" if bar.first is None else f"{bar.first:g}"
        found.append([f"`{bar.door}`", bar.what, shown, first, f"{bar.goal:g}", verdict(bar, measured)])
    return found
