"""Failed attempts by client address: after too many, nobody from there is listened to for a while."""

from __future__ import annotations

import math
from collections import deque

import msgspec

FIRST_DELAY = 0.25
LAST_DELAY = 5.0
_COUNTED = 16  # failures of this machine that are kept: by then the delay has long stopped growing


class LockoutRules(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. exempt_loopback: this machine is never locked out; its wrong secrets are only answered ever later."""

    max_attempts: int = 10
    window: float = 60.0
    lockout: float = 300.0
    exempt_loopback: bool = True
    max_entries: int = 10_000


class _Record:
    __slots__ = ("failures", "until")

    def __init__(self) -> None:
        self.failures: deque[float] = deque()
        self.until = -math.inf


class Lockout:
    """`now` is in seconds on a clock that never steps back."""

    def __init__(self, rules: LockoutRules) -> None:
        self._rules = rules
        self._records: dict[str, _Record] = {}

    @property
    def quiet(self) -> bool:
        """Nobody has failed of late."""
        return not self._records

    def wait(self, who: str, now: float) -> int:
        """Whole seconds until `who` may try again; 0 means now."""
        record = self._records.get(who)
        if record is None or record.until <= now:
            return 0
        return max(1, math.ceil(record.until - now))

    def failed(self, who: str, now: float, *, loopback: bool) -> float:
        """Count a wrong secret; how long to hold its answer back."""
        record = self._records.get(who)
        if record is None:
            if len(self._records) >= self._rules.max_entries:
                self._sweep(now)
            record = self._records[who] = _Record()
        while record.failures and record.failures[0] <= now - self._rules.window:
            record.failures.popleft()
        record.failures.append(now)
        if loopback and self._rules.exempt_loopback:
            while len(record.failures) > _COUNTED:
                record.failures.popleft()
            return float(min(LAST_DELAY, FIRST_DELAY * 2 ** (len(record.failures) - 1)))
        if len(record.failures) >= self._rules.max_attempts:
            record.until = now + self._rules.lockout
            record.failures.clear()
        return 0.0

    def succeeded(self, who: str) -> None:
        """Forget what went wrong before."""
        self._records.pop(who, None)

    def _sweep(self, now: float) -> None:
        horizon = now - self._rules.window
        self._records = {
            who: record
            for who, record in self._records.items()
            if record.until > now or (record.failures and record.failures[-1] > horizon)
        }
        if len(self._records) >= self._rules.max_entries:
            self._records.pop(next(iter(self._records)))
