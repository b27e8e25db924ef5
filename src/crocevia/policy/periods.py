"""Calendar days in a project's time zone, right on the days when clocks change."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

import msgspec


class Day(msgspec.Struct, frozen=True):
    """A calendar day as Unix seconds: from `since` until just before `until`."""

    since: float
    until: float
    label: str
    """`2026-11-30`."""

    def seconds_left(self, now: float) -> int:
        """Whole seconds, at least 1, after which this day is surely over."""
        return max(1, int(-(-(self.until - now) // 1)))


def is_zone(name: str) -> bool:
    """Whether this machine knows the time zone."""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # not found is a LookupError; a folder of zones an OSError
        return name == "UTC"
    return True


def has_zones() -> bool:
    """Whether there is any database of time zones: the system's, or the one that the `tzdata` package brings."""
    return bool(available_timezones())


def day_of(now: float, timezone: str) -> Day:
    """The day that holds `now`. A zone that this machine does not know is read as UTC."""
    zone = _zone(timezone)
    return _day(_local(now, zone), zone)


def days_before(now: float, timezone: str, count: int) -> list[Day]:
    """Today and the `count - 1` days before it, newest first."""
    zone = _zone(timezone)
    today = _local(now, zone)
    return [_day(today - timedelta(days=back), zone) for back in range(count)]


def _local(now: float, zone: tzinfo) -> date:
    # Whole seconds: a fraction could be rounded up into the next day.
    return datetime.fromtimestamp(math.floor(now), zone).date()


def _day(local: date, zone: tzinfo) -> Day:
    return Day(_midnight(local, zone), _midnight(local + timedelta(days=1), zone), local.isoformat())


def _midnight(local: date, zone: tzinfo) -> float:
    # A midnight that the clocks skip is, with fold=0, the very moment of the change; one that comes twice, the first.
    return datetime(local.year, local.month, local.day, tzinfo=zone).astimezone(UTC).timestamp()


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    # UTC is Python's own: ZoneInfo("UTC") needs a database, which a bare machine lacks.
    if name == "UTC" or not is_zone(name):
        return UTC
    return ZoneInfo(name)
