"""What users may spend through this door: a budget like a project's, whoever of their keys asks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crocevia.runtime.control.apply import apply, export
from crocevia.runtime.control.declarations import parse
from tests.aio import run
from tests.contract.requirements import requirement
from tests.doors.responses.house import AGENTS, House, again, house
from tests.fakes.provider import play

from .upstream import chunk, upstream, whole

PRICED = {"upstream": "up-1", "prices": {"input": 1000.0, "output": 10000.0}}  # USD per million tokens
BODY = {"model": "openclaw", "input": "hi", "max_output_tokens": 100}  # at most 1 USD and a little for the prompt
ONE = 12 * 0.001 + 5 * 0.01  # USD, by what the provider counts


def bounded(**bounds: Any) -> str:
    lines = [f"{name} = {value!r}" for name, value in bounds.items()]
    return AGENTS + "\n".join(['[[users]]\nname = "operator"', *lines]) + "\n"


@requirement("R-BUDGET-1")
@pytest.mark.parametrize("model", ["openclaw", "Pepper mini"])
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
def test_twenty_calls_at_once_never_spend_more_than_there_is(model: str, path: str, tmp_path: Path) -> None:
    async def scene() -> None:
        declared, gate = bounded(daily_budget_usd=3.5), asyncio.Event()
        held = replace(whole(), steps=(gate, *whole().steps))  # else a settled call makes room for another
        async with upstream(tmp_path, held, declared=declared, model=PRICED) as (home, provider):
            body: dict[str, Any] = {"model": model}
            if path == "/v1/responses":
                body |= {"input": "hi", "max_output_tokens": 100}
            else:
                body |= {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100}
            keys = [home.secrets.api_key, home.secrets.operator_token]  # the same user's
            asking = [asyncio.ensure_future(home.ask(path, body, token=keys[n % 2])) for n in range(20)]
            while sum(one.done() for one in asking) + len(provider.requests) < len(asking):
                await asyncio.wait([one for one in asking if not one.done()], timeout=0.05)
            gate.set()
            answers = await asyncio.gather(*asking)
            good = [one for one in answers if one.status == 200]
            assert 0 < len(good) == len(provider.requests) <= 3  # each may cost more than a dollar
            for one in answers:
                if one.status != 200:
                    assert (one.status, one.error["type"]) == (402, "insufficient_quota")
                    assert one.error["code"] == "insufficient_quota" and int(one.headers["retry-after"]) >= 1
            standing = home.service.gateway.spend.ledger.reserved()
            assert standing == 0

    run(scene(), timeout=30)


@requirement("R-BUDGET-1")
def test_what_was_spent_today_counts_after_a_restart(tmp_path: Path) -> None:
    async def scene() -> None:
        async with upstream(tmp_path, whole(), declared=bounded(daily_budget_usd=0.1), model=PRICED) as (
            home,
            provider,
        ):
            assert (await home.ask("/v1/responses", BODY)).status == 200  # the one that may overdraw
            assert (await home.ask("/v1/responses", BODY)).status == 200  # something is left
            assert (await home.ask("/v1/responses", BODY)).status == 402
        async with again(tmp_path) as home:
            refused = await home.ask("/v1/responses", {**BODY, "stream": True})
            assert refused.status == 402 and len(provider.requests) == 2

    run(scene(), timeout=30)


@requirement("R-BUDGET-1")
def test_calls_per_hour_and_calls_at_once_are_bounded(tmp_path: Path) -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        declared = bounded(max_concurrency=1, hourly_limit=2)
        async with upstream(tmp_path, play(chunk({"content": "a"}), gate), whole(), declared=declared) as (
            home,
            provider,
        ):
            exchange, task = home.start("/v1/responses", {**BODY, "stream": True})
            await provider.request(0)
            busy = await home.ask("/v1/responses", BODY)
            assert (busy.status, busy.error["type"]) == (429, "rate_limit_error")
            exchange.hang_up()
            await task
            assert (await home.ask("/v1/responses", BODY)).status == 200
            late = await home.ask("/v1/responses", BODY)
            assert late.status == 429 and int(late.headers["retry-after"]) > 60

    run(scene(), timeout=30)


@requirement("R-BUDGET-2")
def test_a_change_is_live_within_a_second_and_comes_back_from_an_export(tmp_path: Path) -> None:
    async def tried(home: House) -> int:
        return (await home.ask("/v1/responses", BODY)).status

    async def scene() -> None:
        async with house(tmp_path, declared=bounded(hourly_limit=1)) as home:
            assert [await tried(home), await tried(home)] == [200, 429]
            place = home.service.home
            assert export(place).users[0].hourly_limit == 1
            apply(place, parse(b'[[users]]\nname = "operator"\nunset = ["hourly_limit"]\n'))
            assert export(place).users == ()
            async with asyncio.timeout(5):
                while await tried(home) != 200:
                    await asyncio.sleep(0.05)

    run(scene(), timeout=30)
