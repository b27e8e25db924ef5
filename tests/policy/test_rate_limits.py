"""So many times a minute, and no memory of what nobody does any more."""

from __future__ import annotations

import pytest

from crocevia.core.errors import Code, GatewayError
from crocevia.policy.rate_limits import KEYS, RateLimiter, client_network


def test_the_limit_holds_in_every_minute_and_says_when_to_come_back() -> None:
    now = [0.0]
    limiter = RateLimiter(clock=lambda: now[0])
    for second in (0, 10, 20):
        now[0] = second
        limiter.admit("ada", "keys", 3)
    now[0] = 30.5
    with pytest.raises(GatewayError) as caught:
        limiter.admit("ada", "keys", 3)
    assert (caught.value.code, caught.value.retry_after) == (Code.RATE_LIMITED, 30)
    limiter.admit("eve", "keys", 3)
    limiter.admit("ada", "images", 3)
    now[0] = 60.0
    limiter.admit("ada", "keys", 3)
    with pytest.raises(GatewayError):
        limiter.admit("ada", "keys", 3)


def test_a_refusal_does_not_count() -> None:
    now = [0.0]
    limiter = RateLimiter(clock=lambda: now[0])
    limiter.admit("ada", "keys", 1)
    for _ in range(100):
        with pytest.raises(GatewayError):
            limiter.admit("ada", "keys", 1)
    now[0] = 60.0
    limiter.admit("ada", "keys", 1)


def test_a_flood_of_names_takes_bounded_memory_and_the_one_unused_for_longest_goes_first() -> None:
    limiter = RateLimiter(clock=lambda: 0.0)
    for index in range(KEYS):
        limiter.count(f"user {index}")
    limiter.count("user 0")
    limiter.count("one more")
    assert [limiter.wait(f"user {index}", 1) > 0 for index in (0, 1, 2)] == [True, False, True]
    assert len(limiter._windows) == KEYS


def test_a_key_that_is_cleared_begins_anew() -> None:
    now = [0.0]
    limiter = RateLimiter(300, clock=lambda: now[0])
    for _ in range(3):
        limiter.count("ada")
    now[0] = 99.5
    assert (limiter.wait("ada", 3), limiter.wait("ada", 4), limiter.wait("eve", 3)) == (201, 0, 0)
    limiter.clear("ada")
    assert limiter.wait("ada", 1) == 0


@pytest.mark.parametrize(
    ("address", "other", "same"),
    [
        ("203.0.113.9", "203.0.113.9", True),
        ("203.0.113.9", "203.0.113.10", False),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2:ffff::1", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:203.0.113.9", "::ffff:203.0.113.10", False),
        ("unix", "unix", True),
        ("unix", "", False),
    ],
)
def test_an_address_stands_for_all_that_one_person_can_have(address: str, other: str, same: bool) -> None:
    assert (client_network(address) == client_network(other)) is same
