"""Limits under any order of calls: never more than allowed, never a slot lost."""

from __future__ import annotations

import random
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crocevia.core.errors import Code, GatewayError
from crocevia.policy.admission import Admission, Permit
from crocevia.policy.rate_limits import SlidingWindow


def admit(admission: Admission, now: float, hourly: int | None = None, concurrency: int | None = None) -> Permit:
    return admission.admit("casa", hourly=hourly, concurrency=concurrency, now=now)


@given(
    limit=st.integers(0, 5),
    gaps=st.lists(st.floats(0, 2000, allow_nan=False), max_size=60),
)
@settings(deadline=None)
def test_no_hour_ever_sees_more_than_the_limit_and_the_wait_is_exact(limit: int, gaps: list[float]) -> None:
    hour = SlidingWindow()
    now, admitted = 1_000_000.0, []
    for gap in gaps:
        now += gap
        wait = hour.wait(limit, now)
        if wait == 0:
            hour.add(now)
            admitted.append(now)
        elif limit:
            assert deepcopy(hour).wait(limit, now + wait) == 0
            assert wait == 1 or deepcopy(hour).wait(limit, now + wait - 1.001) > 0
        assert sum(now - 3600 < then <= now for then in admitted) <= limit
        assert 0 <= wait <= 3600


def test_memory_does_not_grow_with_calls() -> None:
    hour = SlidingWindow()
    for step in range(200_000):
        hour.add(step / 10)
    assert len(hour._buckets) <= 3602
    assert hour.total <= 36_020


def test_a_clock_that_steps_back_frees_nothing() -> None:
    hour = SlidingWindow()
    hour.add(10_000.0)
    hour.add(5_000.0)
    assert hour.wait(2, 5_000.0) > 0
    assert hour.wait(2, 13_600.0) == 0


def test_a_refused_call_takes_nothing() -> None:
    admission = Admission()
    first = admit(admission, 0.0, hourly=1, concurrency=1)
    for _ in range(5):
        with pytest.raises(GatewayError) as busy:
            admit(admission, 1.0, hourly=1, concurrency=1)
        assert (busy.value.code, busy.value.retry_after) == (Code.CONCURRENCY_LIMITED, 1)
    first.release()
    with pytest.raises(GatewayError) as limited:
        admit(admission, 1.0, hourly=1, concurrency=1)
    assert limited.value.code is Code.RATE_LIMITED
    assert admission.running("casa") == 0
    admit(admission, 3601.0, hourly=1, concurrency=1).release()


@given(seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=50)
def test_slots_return_to_zero_whatever_the_order_and_however_often_released(seed: int) -> None:
    dice = random.Random(seed)
    admission = Admission()
    held: list[Permit] = []
    for _ in range(200):
        if dice.random() < 0.6:
            try:
                held.append(admit(admission, 0.0, concurrency=3))
            except GatewayError:
                assert admission.running() == 3
        elif held:
            permit = dice.choice(held)
            permit.release()
            permit.release()
            held = [other for other in held if other is not permit]
        assert admission.running() == len(held) <= 3
    for permit in held:
        permit.release()
    assert admission.running() == 0


def test_calls_of_an_earlier_life_count() -> None:
    admission = Admission()
    admission.remember("casa", 100.0, 2)
    with pytest.raises(GatewayError):
        admit(admission, 200.0, hourly=2)
    admit(admission, 3701.0, hourly=2).release()
