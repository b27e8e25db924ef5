"""A call ends exactly once on every path, says how, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from crocevia.core.calls import Abilities, ModelRequest
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.events import ModelEvent, UsageReported
from crocevia.core.usage import Usage
from crocevia.engines.upstream.errors import from_status
from crocevia.runtime.calls import usage_without_answer
from crocevia.runtime.gateway import CallDraft, CallLimits, Cut
from tests.aio import run
from tests.doors.pepper.asgi import ask, start
from tests.doors.pepper.house import HELLO, PLAIN, House, Puppet, house, say

STREAM = HELLO | {"stream": True}


def draft(**changes: Any) -> CallDraft:
    from crocevia.core.messages import user

    return CallDraft(**({"door": "test", "encode": "x", "messages": (user("x" * 40),)} | changes))


def project(place: House) -> Any:
    return place.gateway.authenticate(b"chiave")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("words", [0, 3])
def test_a_client_that_hangs_up_closes_the_upstream_and_the_record_says_so(stream: bool, words: int) -> None:
    async def work() -> House:
        never = asyncio.Event()
        place = house(Puppet((*[say("12345678")] * words, never)))
        exchange, task = start(place.agent, HELLO | {"stream": stream})
        await asyncio.sleep(0)
        while not place.engine.open or (stream and len(exchange.writes) < words):
            await asyncio.sleep(0)
        exchange.hang_up()
        await task
        assert not exchange.ended
        return place

    place = run(work())
    place.nothing_left()
    settled = place.records.settled[0]
    assert (settled.outcome, settled.ended_by, settled.partial) == ("cancelled", "client", True)
    assert settled.usage.estimated
    assert settled.usage.input_tokens == 6
    assert settled.usage.output_tokens == (2 * words if stream or words else 0)


def test_a_client_that_hangs_up_while_it_is_not_reading_is_noticed() -> None:
    async def work() -> None:
        place = house(Puppet((say("a"), say("b"), *PLAIN)))
        exchange, task = start(place.agent, STREAM)
        exchange.readable.clear()
        while not place.engine.open:
            await asyncio.sleep(0)
        exchange.hang_up()
        await task
        place.nothing_left()
        assert place.records.settled[0].ended_by == "client"

    run(work())


def test_a_cut_never_bills_less_than_the_provider_reported() -> None:
    async def work() -> House:
        never = asyncio.Event()
        usage = UsageReported(Usage(input_tokens=900, output_tokens=70, cache_read_tokens=800))
        place = house(Puppet(([usage], say("abcd"), never)))
        exchange, task = start(place.agent, STREAM)
        await exchange.until(lambda: bool(exchange.writes))
        exchange.hang_up()
        await task
        return place

    usage = run(work()).records.settled[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (900, 70, 800)
    assert not usage.estimated


def test_the_slot_is_free_before_the_caller_hears_the_end() -> None:
    place = house(max_concurrency=1)

    async def work() -> None:
        seen: list[int] = []

        async def noting(scope: Any, receive: Any, send: Any) -> None:
            async def tell(message: Any) -> None:
                if b"event: done" in message.get("body", b""):
                    seen.append(place.gateway.admission.running())
                await send(message)

            await place.agent(scope, receive, tell)

        for _ in range(3):
            assert (await ask(noting, STREAM)).status == 200
        assert seen == [0, 0, 0]

    run(work())
    place.nothing_left()


def test_one_slot_is_one_call_at_a_time() -> None:
    async def work() -> None:
        gate = asyncio.Event()
        place = house(Puppet((gate, *PLAIN)), max_concurrency=1)
        _, first = start(place.agent, HELLO)
        while not place.engine.open:
            await asyncio.sleep(0)
        refused = await ask(place.agent, HELLO)
        assert refused.error() == (429, "troppe_richieste")
        assert refused.headers["retry-after"] == "1"
        gate.set()
        await first
        assert (await ask(place.agent, HELLO)).status == 200
        place.nothing_left()

    run(work())


@pytest.mark.parametrize("stream", [True, False])
def test_draining_refuses_new_calls_and_ends_running_ones_in_time(stream: bool) -> None:
    async def work() -> None:
        place = house(Puppet((say("a"), asyncio.Event())))
        exchange, task = start(place.agent, HELLO | {"stream": stream})
        while not place.engine.open:
            await asyncio.sleep(0)
        place.gateway.drain(0.05)
        assert (await ask(place.agent, HELLO)).error() == (503, "servizio_non_disponibile")
        await task
        code = exchange.events()[-1][1]["code"] if stream else exchange.error()[1]
        assert code == "servizio_non_disponibile"
        place.nothing_left()
        assert (place.records.settled[0].outcome, place.records.settled[0].ended_by) == ("draining", "gateway")

    run(work())


def test_a_task_cancelled_from_outside_stays_cancelled_and_leaves_nothing() -> None:
    async def work() -> None:
        place = house(Puppet((say("a"), asyncio.Event())))
        exchange, task = start(place.agent, STREAM)
        await exchange.until(lambda: bool(exchange.writes))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        place.nothing_left()

    run(work())


class SlowToClose:
    """An engine whose upstream takes a moment to close."""

    name, dialect = "puppet", "plain"

    def __init__(self) -> None:
        self.closing = asyncio.Event()
        self.may_close = asyncio.Event()
        self.closed = asyncio.Event()

    def abilities(self, model: str) -> Abilities:
        return Abilities()

    async def call(self, request: ModelRequest, *, deadline: float) -> AsyncGenerator[list[ModelEvent], None]:
        try:
            yield say("a")
            yield say("b")
        finally:
            self.closing.set()
            await self.may_close.wait()
            self.closed.set()


def test_a_second_cancellation_does_not_stop_the_upstream_from_closing() -> None:
    async def work() -> None:
        engine = SlowToClose()
        place = house(engine)
        exchange, task = start(place.agent, STREAM)
        exchange.readable.clear()  # the call is now waiting for the client, its engine for us
        while not place.gateway.active:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        exchange.hang_up()
        await engine.closing.wait()
        assert place.gateway.admission.running() == 0
        assert place.records.settled[0].ended_by == "client"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        engine.may_close.set()
        await engine.closed.wait()

    run(work())


def test_interrupting_twice_or_too_late_changes_nothing() -> None:
    async def work() -> None:
        place = house(Puppet((say("a"), asyncio.Event())))
        call = place.gateway.open_call(project(place), draft(), place.gateway.route(project(place), draft()))
        call.interrupt(Cut.DRAINED)  # not entered yet: nothing to interrupt
        with pytest.raises(GatewayError) as told:
            async with call:
                asyncio.get_running_loop().call_soon(call.interrupt, Cut.TIMED_OUT)
                asyncio.get_running_loop().call_soon(call.interrupt, Cut.CLIENT_GONE)
                async for _ in call:
                    pass
        assert told.value.code is Code.UPSTREAM_TIMEOUT
        call.interrupt(Cut.CLIENT_GONE)
        await asyncio.sleep(0)
        assert call.cut is Cut.TIMED_OUT
        place.nothing_left()

    run(work())


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("steps", [PLAIN, (say("a"), RuntimeError("x")), (say("a"),)], ids=["whole", "broken", "short"])
def test_a_call_that_is_due_before_it_begins_is_never_cancelled_outside_its_block(stream: bool, steps: Any) -> None:
    async def work() -> None:
        place = house(Puppet(steps), limits=CallLimits(progress=0.0))
        exchange, task = start(place.agent, HELLO | {"stream": stream})
        await task
        assert exchange.ended
        place.nothing_left()

    run(work())


def test_a_thousand_calls_that_end_in_every_way_leave_nothing() -> None:
    async def work() -> None:
        dice = random.Random(7)
        never = asyncio.Event()
        plays = [PLAIN, (say("a"), never), (GatewayError(Reason.UPSTREAM_FAILED),), (RuntimeError("x"),), (say("a"),)]
        place = house(Puppet(*dice.choices(plays, k=1000)), limits=CallLimits(progress=0.2), max_concurrency=50)
        tasks = []
        for number in range(1000):
            exchange, task = start(place.agent, STREAM if number % 2 else HELLO)
            tasks.append(task)
            if dice.random() < 0.3:
                asyncio.get_running_loop().call_later(dice.random() / 20, exchange.hang_up)
            if number % 20 == 0:
                await asyncio.sleep(0.002)
        await asyncio.gather(*tasks)
        place.nothing_left()
        assert len(asyncio.all_tasks()) == 1

    run(work(), timeout=30)


def held(place: House, durable: Any) -> None:
    """The next call's record stays on its way until `durable` is done."""
    note = place.records.open

    def slowly(record: Any) -> Any:
        note(record)
        return durable

    place.records.open = slowly  # type: ignore[method-assign]


def test_no_provider_is_asked_before_the_record_of_the_call_is_durable() -> None:
    async def work() -> House:
        place = house(Puppet(PLAIN))
        durable = asyncio.get_running_loop().create_future()
        held(place, durable)
        exchange, task = start(place.agent, HELLO)
        while not place.records.opened:
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert place.engine.requests == []
        durable.set_result(None)
        await task
        assert exchange.status == 200
        assert len(place.engine.requests) == 1
        return place

    run(work()).nothing_left()


@pytest.mark.parametrize("stream", [True, False])
def test_a_call_whose_record_the_store_does_not_take_is_refused_and_costs_nothing(stream: bool) -> None:
    async def work() -> House:
        place = house(Puppet(PLAIN))
        durable = asyncio.get_running_loop().create_future()
        durable.set_result(GatewayError(Reason.UNAVAILABLE))
        held(place, durable)
        exchange = await ask(place.agent, HELLO | {"stream": stream})
        assert exchange.status == 503
        assert place.engine.requests == []
        return place

    place = run(work())
    place.nothing_left()
    assert (place.records.settled[0].outcome, place.records.settled[0].ended_by) == ("unavailable", "gateway")
    assert place.gateway.spend.ledger.reserved() == 0


def test_a_caller_may_leave_while_the_record_is_on_its_way() -> None:
    async def work() -> House:
        place = house(Puppet(PLAIN))
        held(place, asyncio.get_running_loop().create_future())
        exchange, task = start(place.agent, STREAM)
        while not place.records.opened:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        exchange.hang_up()
        await task
        assert place.engine.requests == []
        return place

    place = run(work())
    place.nothing_left()
    assert place.records.settled[0].outcome == "cancelled"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 429, 500, 502, 503, 504, 529])
def test_a_provider_that_answers_with_an_error_bills_nothing(status: int) -> None:
    for body in (b"", b'{"error":{"type":"x","message":"y"}}', b"<html>"):
        assert usage_without_answer(from_status(status, body, None)) == Usage(input_tokens=0, output_tokens=0)


@pytest.mark.parametrize(
    "error",
    [
        GatewayError(Reason.UPSTREAM_TIMEOUT),
        GatewayError(Reason.UPSTREAM_CUT),
        GatewayError(Reason.UPSTREAM_MALFORMED),
        GatewayError(Reason.TOOL_ARGUMENTS_MALFORMED, tool="x"),
        GatewayError(Reason.INTERNAL),
        ValueError("a fault of ours"),
    ],
    ids=lambda error: str(error),
)
def test_of_a_call_that_may_have_been_answered_nobody_knows_what_it_cost(error: Exception) -> None:
    assert usage_without_answer(error) == Usage()
