from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.errors import GatewayError, Reason
from crocevia.engines.upstream.retry import RetryPolicy, pause, retry_after

POLICY = RetryPolicy(attempts=4, base=0.5, cap=2.0, patience=20.0)


def overloaded(after: int | None = None, retryable: bool = True) -> GatewayError:
    return GatewayError(Reason.UPSTREAM_OVERLOADED, retry_after=after, retryable=retryable)


def test_waits_double_up_to_the_cap_and_end_with_the_attempts() -> None:
    waits = [pause(POLICY, overloaded(), attempt, 60, lambda: 1.0) for attempt in (1, 2, 3, 4)]
    assert waits == [0.5, 1.0, 2.0, None]
    assert pause(POLICY, overloaded(), 1, 60, lambda: 0.0) == 0.25


def test_what_cannot_succeed_is_not_tried_again() -> None:
    assert pause(POLICY, overloaded(retryable=False), 1, 60) is None


def test_the_provider_is_never_asked_before_it_said_and_never_after_patience_or_deadline() -> None:
    assert pause(POLICY, overloaded(5), 1, 60, lambda: 1.0) == 5.5
    assert pause(POLICY, overloaded(21), 1, 60) is None
    assert pause(POLICY, overloaded(5), 1, 5) is None


@given(attempt=st.integers(1, 3), after=st.none() | st.integers(1, 20), remaining=st.floats(0, 100))
def test_a_wait_is_always_within_its_bounds(attempt: int, after: int | None, remaining: float) -> None:
    wait = pause(POLICY, overloaded(after), attempt, remaining)
    if wait is not None:
        assert (after or 0) <= wait < remaining
        assert wait <= (after or 0) + POLICY.cap


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("2", 2),
        ("0", 1),
        ("-5", 1),
        ("1.2", 2),
        ("inf", None),
        ("nan", None),
        ("Mon, 30 Nov 2026 12:00:30 GMT", 30),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 1),
    ],
)
def test_a_retry_after_header_is_whole_seconds_of_at_least_one(header: str | None, seconds: int | None) -> None:
    assert retry_after(header, lambda: datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)) == seconds
