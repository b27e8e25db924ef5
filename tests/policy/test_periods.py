"""A budget day is the calendar day of the project's zone, also when clocks change."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crocevia.policy.periods import day_of, days_before

# Zones whose clocks change at midnight, skip a day, or stand at odd offsets are the ones that break calendars.
ZONES = (
    "UTC",
    "Europe/Rome",
    "America/New_York",
    "America/Havana",
    "America/Sao_Paulo",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Asia/Gaza",
)


@given(now=st.floats(-1e8, 4e9), zone=st.sampled_from(ZONES))
@settings(deadline=None, max_examples=400)
def test_every_moment_is_in_exactly_the_day_that_its_clock_shows(now: float, zone: str) -> None:
    day = day_of(now, zone)
    assert day.since <= now < day.until
    assert day.label == datetime.fromtimestamp(math.floor(now), ZoneInfo(zone)).date().isoformat()
    assert day_of(day.since, zone) == day
    assert day_of(day.until, zone).since == day.until
    assert day_of(day.since - 1, zone).label < day.label
    assert 1 <= day.seconds_left(now) <= 26 * 3600


@pytest.mark.parametrize(
    ("zone", "moment", "hours"),
    [
        ("Europe/Rome", "2026-03-29T12:00", 23),
        ("Europe/Rome", "2026-10-25T12:00", 25),
        ("Europe/Rome", "2026-10-26T12:00", 24),
        ("Australia/Lord_Howe", "2026-04-05T12:00", 24.5),
        ("America/Havana", "2026-03-08T12:00", 23),
    ],
)
def test_a_day_on_which_clocks_change_has_its_own_length(zone: str, moment: str, hours: float) -> None:
    now = datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(zone)).timestamp()
    day = day_of(now, zone)
    assert day.until - day.since == hours * 3600


def test_after_exactly_the_seconds_left_the_next_day_has_begun() -> None:
    for now in (1_775_000_000.0, 1_775_000_000.4, 1_793_000_000.999):
        day = day_of(now, "Europe/Rome")
        assert day_of(now + day.seconds_left(now), "Europe/Rome").since == day.until
        assert day_of(now + day.seconds_left(now) - 1.001, "Europe/Rome") == day


def test_recent_days_are_adjacent_and_a_zone_that_nobody_knows_is_utc() -> None:
    days = days_before(1_793_000_000.0, "Europe/Rome", 10)
    assert [later.since for later in days[:-1]] == [earlier.until for earlier in days[1:]]
    assert day_of(86_400.0 * 3 + 5, "Nowhere/At_All").since == 86_400.0 * 3


BARE = """
import sys
if "without tzdata" in sys.argv:
    sys.modules["tzdata"] = None
from crocevia.policy.periods import day_of, has_zones, is_zone
print(has_zones(), is_zone("UTC"), is_zone("Europe/Rome"), day_of(1_782_000_000, "UTC").label,
      day_of(1_781_992_800, "Europe/Rome").label, is_zone("Mars/Base"), is_zone("../../etc/passwd"))
"""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "True True True 2026-06-21 2026-06-21 False False"),
        (("without tzdata",), "False True False 2026-06-21 2026-06-20 False False"),
    ],
)
def test_a_machine_without_a_zone_database_has_the_one_of_the_package_or_at_least_utc(
    given: tuple[str, ...], said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BARE, *given],
        env={"PYTHONTZPATH": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.split() == said.split()
