"""Later prices of calls that were recorded without one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crocevia.core.catalogue import EngineSpec, ModelSpec, Prices
from crocevia.core.costs import usage_cost
from crocevia.core.turn import entries as e
from crocevia.core.usage import Usage
from crocevia.runtime.money import late
from crocevia.runtime.money.prices import rates_of

ENGINE = EngineSpec(name="far", kind="openai-chat", base_url="https://far.example/v1")
MODEL = ModelSpec(
    name="m", engine="far", upstream="brain", prices=Prices(input=2, output=8, cache_read=1, cache_write=4)
)
ASKED = e.Unpriced("m", "far", "brain")
NOBODY = Usage()
TOKENS = Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=300, cache_write_tokens=200)


def call(
    usage: Usage = TOKENS,
    asked: e.Unpriced | None = ASKED,
    cost: float | None = None,
    at: int = 1_790_000_000_000,
) -> e.TitleAnswered:
    return e.TitleAnswered(turn="t", at=at, usage=usage, cost_usd=cost, unpriced=asked)


def price(entry: e.Invocation, model: ModelSpec = MODEL, engine: EngineSpec = ENGINE) -> int | None:
    return late.pricing({model.name: model}, {engine.name: engine})(entry)


def test_each_kind_of_token_has_its_price() -> None:
    assert price(call()) == 500 * 2000 + 300 * 1000 + 200 * 4000 + 100 * 8000


@pytest.mark.parametrize(
    "entry",
    [
        call(asked=None),
        call(asked=e.Unpriced("m", "far", "another")),
        call(asked=e.Unpriced("m", "near", "brain")),
        call(asked=e.Unpriced("gone", "far", "brain")),
        call(usage=NOBODY),
        call(usage=Usage(input_tokens=5)),
    ],
)
def test_what_nobody_can_tell_stays_unknown(entry: e.Invocation) -> None:
    assert price(entry) is None


def test_the_public_list_is_asked_for_the_day_of_the_call() -> None:
    engine = EngineSpec(name="far", kind="anthropic")
    model = ModelSpec(name="m", engine="far", upstream="claude-sonnet-4-5")
    day = datetime(2026, 5, 1, tzinfo=UTC).timestamp()
    entry = call(asked=e.Unpriced("m", "far", model.upstream), at=int(day * 1000))
    rates = rates_of(model, engine, day)
    assert rates is not None
    assert price(entry, model, engine) == late.cost_of(TOKENS, rates)


def test_calls_are_told_by_their_order_and_only_if_all_of_them_are_there() -> None:
    cost = usage_cost({}, invocations=3, pending=2, closed=True, basis="none", as_of=0.0)
    calls = [call(), call(cost=0.5), call()]
    assert list(late.unpriced(cost, calls)) == [0, 2]
    assert late.unpriced(cost, calls[1:]) == late.unpriced(cost, []) == {}
