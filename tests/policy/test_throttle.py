"""So many times a minute, and no memory of what nobody does any more."""

from __future__ import annotations

import pytest

from crocevia.core.errors import Code, GatewayError
from crocevia.policy.throttle import Throttle


def test_the_limit_holds_in_every_minute_and_says_when_to_come_back() -> None:
    now = [0.0]
    throttle = Throttle(clock=lambda: now[0])
    for second in (0, 10, 20):
        now[0] = second
        throttle.admit("ada", "keys", 3)
    now[0] = 30.5
    with pytest.raises(GatewayError) as caught:
        throttle.admit("ada", "keys", 3)
    assert (caught.value.code, caught.value.retry_after) == (Code.RATE_LIMITED, 30)
    throttle.admit("eve", "keys", 3)
    throttle.admit("ada", "images", 3)
    now[0] = 60.0
    throttle.admit("ada", "keys", 3)
    with pytest.raises(GatewayError):
        throttle.admit("ada", "keys", 3)


def test_a_refusal_does_not_count() -> None:
    now = [0.0]
    throttle = Throttle(clock=lambda: now[0])
    throttle.admit("ada", "keys", 1)
    for _ in range(100):
        with pytest.raises(GatewayError):
            throttle.admit("ada", "keys", 1)
    now[0] = 60.0
    throttle.admit("ada", "keys", 1)


def test_a_flood_of_names_is_forgotten_after_a_minute() -> None:
    now = [0.0]
    throttle = Throttle(clock=lambda: now[0])
    for index in range(10_000):
        throttle.admit(f"user {index}", "keys", 1)
    now[0] = 61.0
    throttle.admit("ada", "keys", 1)
    assert len(throttle._seen) == 1
