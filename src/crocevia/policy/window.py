"""How many calls the last hour saw."""

from __future__ import annotations

import math
from collections import deque

HOUR = 3600


class RollingHour:
    """Counts admissions in one bucket per second: at most 3601 of them, however many calls.

    A bucket is kept until its youngest call is an hour old, so no hour ever sees more than the limit, and nobody
    waits longer than an hour.
    `now` is in seconds on any clock; a clock that steps back is taken to stand still.
    """

    __slots__ = ("_buckets", "_now", "total")

    def __init__(self) -> None:
        self.total = 0
        self._buckets: deque[tuple[float, int]] = deque()
        self._now = -math.inf

    def add(self, now: float, count: int = 1) -> None:
        """Remember `count` admissions at `now`. Times must not decrease."""
        self._forget(now)
        self.total += count
        if self._buckets and math.floor(self._buckets[-1][0]) == math.floor(self._now):
            count += self._buckets.pop()[1]
        self._buckets.append((self._now, count))

    def wait(self, limit: int, now: float) -> int:
        """Whole seconds until one more admission keeps to `limit`; 0 means now."""
        self._forget(now)
        surplus = self.total - limit + 1
        if surplus <= 0:
            return 0
        for youngest, count in self._buckets:
            surplus -= count
            if surplus <= 0:
                return max(1, math.ceil(youngest + HOUR - self._now))
        return HOUR  # a limit of zero: no wait helps

    def frees(self, now: float) -> int:
        """Whole seconds until the oldest admission stops counting; 0 if there is none."""
        self._forget(now)
        return max(1, math.ceil(self._buckets[0][0] + HOUR - self._now)) if self._buckets else 0

    def _forget(self, now: float) -> None:
        self._now = max(self._now, now)
        horizon = self._now - HOUR
        while self._buckets and self._buckets[0][0] <= horizon:
            self.total -= self._buckets.popleft()[1]
