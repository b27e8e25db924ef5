"""Money and limits, as a caller and as the bill see them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crocevia.core.catalogue import Prices
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import UsageReported
from crocevia.core.usage import Usage
from crocevia.policy.periods import day_of
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.pepper.asgi import ask, start
from tests.doors.pepper.house import END, HELLO, PLAIN, House, Puppet, house, say

STREAM = HELLO | {"stream": True}
# One call: 1000 in, 100 out, at 1 and 10 USD per million: 0.002 USD.
PRICES = Prices(input=1, output=10)
USED = UsageReported(Usage(input_tokens=1000, output_tokens=100))
ANSWER = (say("Ciao."), [USED, END])
ONE = 0.002


def priced(*plays: Any, **project: Any) -> House:
    return house(Puppet(*(plays or (ANSWER,))), model={"prices": PRICES}, **project)


def spent(place: House) -> int:
    return place.gateway.spend.status(place.gateway.authenticate(b"chiave")).spent


@requirement("P-MON-429", "P-MON-FREE")
def test_a_day_ends_when_its_money_is_gone() -> None:
    place = priced(daily_budget_usd=1.2 * ONE)

    async def work() -> list[tuple[int, str]]:
        return [
            (answer.status, answer.headers.get("retry-after", ""))
            for answer in [await ask(place.agent, HELLO) for _ in range(4)]
        ]

    answers = run(work())
    assert [status for status, _ in answers] == [200, 200, 429, 429]
    refused = run(ask(place.agent, HELLO))
    assert refused.error() == (429, "budget_esaurito")
    assert len(place.engine.requests) == 2
    place.nothing_left()


@requirement("P-MON-DAY")
@pytest.mark.parametrize("zone", ["UTC", "Europe/Rome", "Pacific/Auckland"])
def test_after_exactly_the_announced_wait_the_next_call_passes(zone: str) -> None:
    place = priced(daily_budget_usd=ONE, timezone=zone)

    async def work() -> None:
        assert (await ask(place.agent, HELLO)).status == 200
        refused = await ask(place.agent, HELLO)
        wait = int(refused.headers["retry-after"])
        assert refused.error() == (429, "budget_esaurito")
        assert place.clock[0] + wait >= day_of(place.clock[0], zone).until > place.clock[0] + wait - 1
        place.clock[0] += wait - 1
        assert (await ask(place.agent, HELLO)).status == 429
        place.clock[0] += 1
        assert (await ask(place.agent, HELLO)).status == 200

    run(work())


@requirement("P-MON-RESERVE")
@pytest.mark.parametrize("body", [HELLO, STREAM])
def test_twenty_calls_at_once_against_money_for_one(body: dict[str, Any]) -> None:
    async def work() -> House:
        gate = asyncio.Event()
        place = priced((gate, *ANSWER), daily_budget_usd=1.2 * ONE)
        running = [start(place.agent, body) for _ in range(20)]
        while sum(task.done() for _, task in running) < 19:
            await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*(task for _, task in running))
        assert len(place.engine.requests) == 1
        statuses = sorted(exchange.status for exchange, _ in running)
        assert statuses == [200] + [429] * 19
        for exchange, _ in running:
            if exchange.status == 429:
                assert exchange.error()[1] == "budget_esaurito"
                assert exchange.headers["retry-after"] == "1"
        return place

    place = run(work())
    place.nothing_left()
    assert place.gateway.spend.ledger.reserved() == 0
    assert spent(place) == 2_000_000


@requirement("P-MON-UNPRICED")
def test_a_model_without_a_price_is_refused_only_where_money_counts() -> None:
    armed = house(daily_budget_usd=5.0)
    refused = run(ask(armed.agent, HELLO))
    assert refused.error() == (503, "servizio_non_disponibile")
    assert int(refused.headers["retry-after"]) >= 1
    assert not armed.engine.requests
    free = house(daily_budget_usd=5.0, model={"prices": Prices(input=0, output=0)})
    assert run(ask(free.agent, HELLO)).status == 200
    assert free.records.settled[0].cost_usd == 0
    open_ = house()
    assert run(ask(open_.agent, HELLO)).status == 200
    assert open_.records.settled[0].cost_usd is None
    assert open_.records.opened[0].reserved_usd is None


@requirement("P-MON-CACHE")
@pytest.mark.parametrize("stream", [True, False])
def test_cached_tokens_are_billed_once_and_at_their_price(stream: bool) -> None:
    first = UsageReported(Usage(input_tokens=12_307, output_tokens=1, cache_write_tokens=12_304))
    last = UsageReported(Usage(input_tokens=12_307, output_tokens=550, cache_write_tokens=12_304))
    place = house(Puppet(([first], say("a"), [last, END])), model={"prices": Prices(input=5, output=25)})
    run(ask(place.agent, HELLO | {"stream": stream}))
    assert place.records.settled[0].cost_usd == (3 * 5 + 12_304 * 6.25 + 550 * 25) / 1e6
    read = UsageReported(Usage(input_tokens=10_000, output_tokens=0, cache_read_tokens=10_000))
    place = house(Puppet((say("a"), [read, END])), model={"prices": Prices(input=5, output=25)})
    run(ask(place.agent, HELLO | {"stream": stream}))
    assert place.records.settled[0].cost_usd == 0.005


@requirement("P-MON-CUT")
def test_an_abandoned_stream_is_billed_at_what_is_known() -> None:
    async def work() -> House:
        never = asyncio.Event()
        begun = UsageReported(Usage(input_tokens=1000, output_tokens=1))
        place = priced(([begun], *[say("12345678")] * 50, never))
        exchange, task = start(place.agent, STREAM)
        await exchange.until(lambda: len(exchange.writes) >= 50)
        exchange.hang_up()
        await task
        return place

    place = run(work())
    settled = place.records.settled[0]
    assert (settled.partial, settled.usage.estimated, settled.usage.output_tokens) == (True, True, 100)
    assert settled.cost_usd == ONE
    assert spent(place) == 2_000_000


@requirement("P-MON-CUT")
def test_a_provider_that_counts_nothing_is_billed_at_an_estimate() -> None:
    place = priced((say("x" * 400), [END]), daily_budget_usd=1.0)
    run(ask(place.agent, HELLO))
    settled = place.records.settled[0]
    assert settled.usage.estimated
    assert settled.cost_usd is not None and settled.cost_usd > 0.001


@requirement("P-MON-HEAD")
@pytest.mark.parametrize("body", [HELLO, STREAM])
def test_every_answer_tells_what_is_left(body: dict[str, Any]) -> None:
    place = priced(daily_budget_usd=0.1, hourly_limit=2)

    async def work() -> None:
        first = await ask(place.agent, body)
        assert first.headers["x-pepper-budget-limit"] == "0.100000"
        assert first.headers["x-pepper-limit"] == "2"
        assert first.headers["x-pepper-limit-remaining"] == "1"
        assert 3599 <= int(first.headers["x-pepper-limit-reset"]) <= 3600
        assert 1 <= int(first.headers["x-pepper-budget-reset"]) <= 86_400
        left = float(first.headers["x-pepper-budget-remaining"])
        assert left == 0.098 if body is HELLO else left < 0.098
        for wrong in ({"messages": []}, {"messages": [{"role": "user", "content": ""}]}):
            assert (await ask(place.agent, wrong)).headers["x-pepper-budget-remaining"] == "0.098000"
        await ask(place.agent, body)
        limited = await ask(place.agent, body)
        assert limited.error() == (429, "troppe_richieste")
        assert limited.headers["x-pepper-limit-remaining"] == "0"
        assert limited.headers["x-pepper-budget-remaining"] == "0.096000"
        stranger = await ask(place.agent, body, key="sbagliata")
        assert not [name for name in stranger.headers if name.startswith("x-pepper-")]

    run(work())


@requirement("P-MON-FAIL")
def test_what_never_ran_costs_nothing() -> None:
    place = priced((GatewayError(Reason.UPSTREAM_FAILED),), daily_budget_usd=0.1, hourly_limit=1, max_concurrency=1)

    async def work() -> None:
        assert (await ask(place.agent, HELLO)).status == 502
        assert (await ask(place.agent, HELLO)).error()[1] == "troppe_richieste"

    run(work())
    assert (spent(place), place.gateway.spend.ledger.reserved()) == (0, 0)
    place.nothing_left()


@requirement("P-LIM-CON")
def test_too_many_at_a_time_are_told_to_come_back() -> None:
    async def work() -> None:
        gate = asyncio.Event()
        place = priced((gate, *ANSWER), max_concurrency=2, daily_budget_usd=10.0)
        running = [start(place.agent, HELLO) for _ in range(2)]
        while place.engine.open < 2:
            await asyncio.sleep(0)
        held = place.gateway.spend.ledger.reserved()
        refused = await ask(place.agent, HELLO)
        assert refused.error() == (429, "troppe_richieste")
        assert refused.headers["retry-after"] == "1"
        assert place.gateway.spend.ledger.reserved() == held
        gate.set()
        await asyncio.gather(*(task for _, task in running))
        assert (await ask(place.agent, HELLO)).status == 200

    run(work())


@requirement("P-LIM-NONE")
def test_limits_that_are_not_set_do_not_exist() -> None:
    place = priced(PLAIN)

    async def work() -> None:
        for _ in range(50):
            answer = await ask(place.agent, HELLO)
            assert answer.status == 200
            assert not [name for name in answer.headers if name.startswith("x-pepper-")]

    run(work())
