"""When a call that has shown nothing yet may be tried again, and how long to wait first."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from crocevia.core.errors import GatewayError


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`attempts` in all. Waits grow from `base` to `cap` seconds; a provider that asks for more than `patience` is not
    waited for: its caller is told when to come back."""

    attempts: int = 3
    base: float = 0.5
    cap: float = 8.0
    patience: float = 5.0  # two of these end before a silent stream is pinged: until then an answer has a status


def pause(
    policy: RetryPolicy,
    failure: GatewayError,
    attempt: int,
    remaining: float,
    jitter: Callable[[], float] = random.random,
) -> float | None:
    """Seconds to wait before the attempt after number `attempt` (from 1), or None to give up.

    remaining: seconds to the call's deadline; a wait that would use them up is not begun.
    """
    if not failure.retryable or attempt >= policy.attempts:
        return None
    ceiling = min(policy.cap, policy.base * 2 ** (attempt - 1))
    wait = ceiling * (0.5 + jitter() / 2)
    if failure.retry_after is not None:
        # Jitter on top: the callers a provider turned away together must not come back together.
        wait = failure.retry_after + wait
        if failure.retry_after > policy.patience:
            return None
    return wait if wait < remaining else None


def retry_after(header: str | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> int | None:
    """A Retry-After header (seconds or a date) as whole seconds >= 1; None when absent or unreadable."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - now()).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(1, math.ceil(seconds)) if math.isfinite(seconds) else None
