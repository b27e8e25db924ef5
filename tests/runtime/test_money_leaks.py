"""Whatever happens to calls, and in whatever order: no money stays reserved, no slot stays taken, the sums agree."""

from __future__ import annotations

import asyncio
import random

import pytest

from crocevia.core.catalogue import Prices
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import Stopped, StopReason, UsageReported
from crocevia.core.usage import Usage
from crocevia.policy.prices import nano
from tests.aio import run
from tests.doors.pepper.asgi import Exchange, ask, start
from tests.doors.pepper.house import END, HELLO, House, Puppet, Step, house, say

USED = UsageReported(Usage(input_tokens=1000, output_tokens=100))
PLAYS: tuple[tuple[Step, ...], ...] = (
    (say("bene"), [USED, END]),
    (say("senza conto"), [END]),
    (GatewayError(Reason.UPSTREAM_FAILED),),
    (say("a"), GatewayError(Reason.UPSTREAM_OVERLOADED)),
    (say("a"), RuntimeError("ours")),
    ([USED], say("a"), [Stopped(StopReason.REFUSAL)]),
    (say("mai finita"),),
    (say("ferma"), asyncio.Event()),
)


@pytest.mark.parametrize("seed", range(8))
def test_two_hundred_calls_that_end_in_every_way(seed: int) -> None:
    dice = random.Random(seed)

    async def one(place: House) -> None:
        body = HELLO | {"stream": dice.random() < 0.5, "max_tokens": 256}
        if dice.random() < 0.1:
            body = {"messages": dice.choice([[], [{"role": "user"}], "x"])}
        exchange, task = start(place.agent, body)
        for _ in range(dice.randrange(12)):
            await asyncio.sleep(0)
        if dice.random() < 0.3:
            exchange.hang_up()
        elif dice.random() < 0.1:
            task.cancel()
        await finished(exchange, task)

    async def work() -> None:
        plays = [dice.choice(PLAYS) for _ in range(400)]
        place = house(
            Puppet(*plays, (say("bene"), [USED, END])),
            model={"prices": Prices(input=1, output=10)},
            max_concurrency=4,
            daily_budget_usd=1000.0,
        )
        waiting: set[asyncio.Task[None]] = set()
        for _ in range(200):
            waiting.add(asyncio.ensure_future(one(place)))
            if len(waiting) > dice.randrange(1, 7):
                _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*waiting)
        place.nothing_left()
        ledger = place.gateway.spend.ledger
        assert ledger.reserved() == 0
        project = place.gateway.authenticate(b"chiave")
        billed = sum(nano(record.cost_usd) for record in place.records.settled if record.cost_usd is not None)
        assert place.gateway.spend.status(project).spent == billed > 0
        place.engine.plays = [PLAYS[0]]
        assert (await ask(place.agent, HELLO)).status == 200

    run(work(), timeout=40)


async def finished(exchange: Exchange, task: asyncio.Task[None]) -> None:
    """The end of an exchange; one that hangs is left by its caller."""
    await asyncio.wait({task}, timeout=0.05)
    exchange.hang_up()
    await asyncio.wait({task})
