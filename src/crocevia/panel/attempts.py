"""Counting failed sign-ins, per address and per account. An attempt counts when it starts, so a burst gains nothing."""

from __future__ import annotations

import math
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import Final

KEYS: Final = 10_000  # the most that are remembered; the oldest goes first


class Attempts:
    """At most `limit` in `window` seconds for one key."""

    __slots__ = ("_limit", "_times", "_window")

    def __init__(self, limit: int, window: float) -> None:
        self._limit = limit
        self._window = window
        self._times: OrderedDict[str, list[float]] = OrderedDict()

    def wait(self, key: str, now: float) -> int:
        """Whole seconds until the next attempt is allowed; 0: now."""
        times = self._recent(key, now)
        return 0 if len(times) < self._limit else max(1, math.ceil(times[-self._limit] + self._window - now))

    def add(self, key: str, now: float) -> None:
        """Count an attempt."""
        self._times[key] = [*self._recent(key, now), now][-self._limit :]
        self._times.move_to_end(key)
        if len(self._times) > KEYS:
            self._times.popitem(last=False)

    def clear(self, key: str) -> None:
        """It was the right person."""
        self._times.pop(key, None)

    def _recent(self, key: str, now: float) -> list[float]:
        return [at for at in self._times.get(key, ()) if at > now - self._window]


def bucket(address: str) -> str:
    """The key of an address: a whole /64 counts as one, since one person can have all of it."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)
