"""Admission of one call: the hourly limit and the concurrency slot, taken together or not at all."""

from __future__ import annotations

from crocevia.core.errors import GatewayError, Reason
from crocevia.policy.rate_limits import SlidingWindow


class _Meter:
    __slots__ = ("hour", "running")

    def __init__(self) -> None:
        self.hour = SlidingWindow()
        self.running = 0


class Permit:
    """The right to run one call. It is owned by that call and counts until it is released."""

    __slots__ = ("_meter",)

    def __init__(self, meter: _Meter) -> None:
        self._meter: _Meter | None = meter
        meter.running += 1

    def release(self) -> None:
        """Give the slot back. Releasing again does nothing."""
        meter, self._meter = self._meter, None
        if meter is not None:
            meter.running -= 1


class Admission:
    """What every tenant is using now. Synchronous, so that checking and taking are one step."""

    __slots__ = ("_meters",)

    def __init__(self) -> None:
        self._meters: dict[str, _Meter] = {}

    def admit(self, tenant: str, *, hourly: int | None, concurrency: int | None, now: float) -> Permit:
        """Take one call's worth of every limit (None: unlimited).

        Raises GatewayError CONCURRENCY_LIMITED or RATE_LIMITED, with `retry_after`; a refused call takes nothing.
        """
        meter = self._meters.get(tenant)
        if meter is None:
            meter = self._meters[tenant] = _Meter()
        if concurrency is not None and meter.running >= concurrency:
            raise GatewayError(Reason.CONCURRENCY_LIMITED, retry_after=1, limit=concurrency)
        if hourly is not None and (seconds := meter.hour.wait(hourly, now)):
            raise GatewayError(Reason.RATE_LIMITED, retry_after=seconds, limit=hourly, seconds=seconds)
        meter.hour.add(now)
        return Permit(meter)

    def running(self, tenant: str | None = None) -> int:
        """Calls that hold a slot now, of one tenant or of all."""
        if tenant is None:
            return sum(meter.running for meter in self._meters.values())
        meter = self._meters.get(tenant)
        return meter.running if meter is not None else 0

    def used(self, tenant: str, now: float) -> tuple[int, int]:
        """Admissions of the last hour, and the seconds until the oldest of them stops counting."""
        meter = self._meters.get(tenant)
        if meter is None:
            return 0, 0
        frees = meter.hour.frees(now)  # first: it forgets what no longer counts
        return meter.hour.total, frees

    def remember(self, tenant: str, at: float, count: int = 1) -> None:
        """Count admissions of an earlier life, oldest first."""
        self._meters.setdefault(tenant, _Meter()).hour.add(at, count)
