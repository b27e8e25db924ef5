"""Failed attempts by client address: after too many, nobody from there is listened to for a while."""

from __future__ import annotations

import math

import msgspec

from crocevia.policy.rate_limits import SlidingWindow

FIRST_DELAY = 0.25
LAST_DELAY = 5.0
_COUNTED = 16  # failures of this machine: by then the delay has long stopped growing


class LockoutRules(msgspec.Struct, frozen=True, kw_only=True):
    """When an address is locked out."""

    max_attempts: int = 10
    """Wrong secrets within `window` that lock an address out."""
    window: float = 60.0
    """Seconds."""
    lockout: float = 300.0
    """Seconds."""
    exempt_loopback: bool = True
    """This machine is never locked out; its wrong secrets are only answered ever later."""
    max_total: int = 200
    """Wrong secrets of all other machines within `window`, after which only known secrets are listened to."""
    max_entries: int = 10_000
    """Addresses that are remembered at most."""


class _Record:
    __slots__ = ("failures", "until")

    def __init__(self, window: float) -> None:
        self.failures = SlidingWindow(window)
        self.until = -math.inf


class Lockout:
    """`now` is in seconds on a clock that never steps back."""

    def __init__(self, rules: LockoutRules) -> None:
        self._rules = rules
        self._records: dict[str, _Record] = {}
        self._all = SlidingWindow(rules.window)

    @property
    def clear(self) -> bool:
        """Nobody has failed of late."""
        return not self._records

    def wait(self, who: str, now: float) -> int:
        """Whole seconds until `who` may try again; 0 means now."""
        record = self._records.get(who)
        if record is None or record.until <= now:
            return 0
        return max(1, math.ceil(record.until - now))

    def wait_for_all(self, now: float) -> int:
        """Whole seconds until a secret that nobody has shown before is listened to; 0 means now."""
        return self._all.wait(self._rules.max_total, now)

    def failed(self, who: str, now: float, *, loopback: bool) -> float:
        """Count a wrong secret; how long to hold its answer back."""
        record = self._records.get(who)
        if record is None:
            if len(self._records) >= self._rules.max_entries:
                self._sweep(now)
            record = self._records[who] = _Record(self._rules.window)
        record.failures.add(now)
        if loopback and self._rules.exempt_loopback:
            return float(min(LAST_DELAY, FIRST_DELAY * 2 ** (min(record.failures.total, _COUNTED) - 1)))
        self._all.add(now)
        if record.failures.total >= self._rules.max_attempts:
            record.until = now + self._rules.lockout
            record.failures = SlidingWindow(self._rules.window)
        return 0.0

    def succeeded(self, who: str) -> None:
        """Forget what went wrong before."""
        self._records.pop(who, None)

    def _sweep(self, now: float) -> None:
        self._records = {
            who: record for who, record in self._records.items() if record.until > now or record.failures.frees(now)
        }
        if len(self._records) >= self._rules.max_entries:
            self._records.pop(next(iter(self._records)))
