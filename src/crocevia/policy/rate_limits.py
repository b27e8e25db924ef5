"""How often something may be done: one sliding window, alone or one per key."""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from ipaddress import IPv6Address, ip_address
from typing import Final

from crocevia.core.errors import GatewayError, Reason

HOUR: Final = 3600
MINUTE: Final = 60
KEYS: Final = 10_000  # the most that a limiter remembers; the one unused for longest goes first


class SlidingWindow:
    """How much happened in the last `seconds`, in one bucket per second: at most seconds + 1 of them.

    A bucket is kept until its youngest event is as old as the window, so no window ever sees more than the limit, and
    nobody waits longer than one.
    `now` is in seconds on any clock; a clock that steps back is taken to stand still.
    """

    __slots__ = ("_buckets", "_now", "_seconds", "total")

    def __init__(self, seconds: float = HOUR) -> None:
        self.total = 0
        self._seconds = seconds
        self._buckets: deque[tuple[float, int]] = deque()
        self._now = -math.inf

    def add(self, now: float, count: int = 1) -> None:
        """Remember `count` events at `now`. Times must not decrease."""
        self._forget(now)
        self.total += count
        if self._buckets and math.floor(self._buckets[-1][0]) == math.floor(self._now):
            count += self._buckets.pop()[1]
        self._buckets.append((self._now, count))

    def wait(self, limit: int, now: float) -> int:
        """Whole seconds until one more event keeps to `limit`; 0 means now."""
        self._forget(now)
        surplus = self.total - limit + 1
        if surplus <= 0:
            return 0
        for youngest, count in self._buckets:
            surplus -= count
            if surplus <= 0:
                return max(1, math.ceil(youngest + self._seconds - self._now))
        return math.ceil(self._seconds)  # a limit of zero: no wait helps

    def frees(self, now: float) -> int:
        """Whole seconds until the oldest event stops counting; 0 if there is none."""
        self._forget(now)
        return max(1, math.ceil(self._buckets[0][0] + self._seconds - self._now)) if self._buckets else 0

    def _forget(self, now: float) -> None:
        self._now = max(self._now, now)
        horizon = self._now - self._seconds
        while self._buckets and self._buckets[0][0] <= horizon:
            self.total -= self._buckets.popleft()[1]


class RateLimiter:
    """A sliding window per key, for a bounded number of keys."""

    def __init__(self, seconds: float = MINUTE, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._windows: OrderedDict[Hashable, SlidingWindow] = OrderedDict()

    def wait(self, key: Hashable, limit: int) -> int:
        """Whole seconds until one more keeps to `limit`; 0 means now."""
        window = self._windows.get(key)
        return window.wait(limit, self._clock()) if window is not None else 0

    def count(self, key: Hashable) -> None:
        """Count one."""
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = SlidingWindow(self._seconds)
            if len(self._windows) > KEYS:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(key)
        window.add(self._clock())

    def clear(self, key: Hashable) -> None:
        """Forget a key."""
        self._windows.pop(key, None)

    def admit(self, who: str, what: str, limit: int) -> None:
        """Count one more. Raises GatewayError(RATE_LIMITED) with `retry_after`, which counts nothing."""
        seconds = self.wait((who, what), limit)
        if seconds:
            raise GatewayError(Reason.TOO_MANY_REQUESTS, retry_after=seconds, seconds=seconds)
        self.count((who, what))


def client_network(address: str) -> str:
    """The key of a client's address: a whole /64 counts as one, since one person can have all of it."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)
