"""How often a user may do what is costly: so many times a minute."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from crocevia.core.errors import GatewayError, Reason

MINUTE: Final = 60.0
_USERS: Final = 10_000


class Throttle:
    """Counts by (who, what). At most `limit` moments are kept of each, and forgotten after a minute."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str], deque[float]] = {}

    def admit(self, who: str, what: str, limit: int) -> None:
        """Count one more. Raises GatewayError(RATE_LIMITED), which counts nothing."""
        now = self._clock()
        seen = self._seen.get((who, what))
        if seen is None:
            if len(self._seen) >= _USERS:
                self._sweep(now)
            seen = self._seen[who, what] = deque()
        while seen and seen[0] <= now - MINUTE:
            seen.popleft()
        if len(seen) >= limit:
            wait = max(1, math.ceil(seen[0] + MINUTE - now))
            raise GatewayError(Reason.TOO_MANY_REQUESTS, retry_after=wait, seconds=wait)
        seen.append(now)

    def _sweep(self, now: float) -> None:
        self._seen = {key: seen for key, seen in self._seen.items() if seen and seen[-1] > now - MINUTE}
