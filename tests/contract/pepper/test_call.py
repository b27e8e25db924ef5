"""What a call leaves behind, how long it may take, where it is found."""

from __future__ import annotations

import asyncio

from crocevia.runtime.gateway import CallLimits
from tests.aio import run
from tests.app.serving import serving
from tests.contract.requirements import requirement
from tests.doors.pepper.asgi import ask, start
from tests.doors.pepper.house import HELLO, PLAIN, Puppet, house, say


@requirement("P-END-1")
def test_both_addresses_are_the_same_endpoint() -> None:
    async def work() -> None:
        async with serving() as place:
            for path in ("/agent", "/agent.php"):
                status, _, body = await place.post(path, HELLO)
                assert (status, b'"versione":"Pepper 7"' in body) == (200, True)

    run(work())


@requirement("P-LOG-1")
def test_every_call_leaves_one_record() -> None:
    place = house()
    run(ask(place.agent, HELLO | {"stream": True}))
    opened, settled = place.records.opened[0], place.records.settled[0]
    assert (opened.door, opened.encode, opened.project, opened.model) == ("pepper", "agente", "casa", "Pepper 7")
    assert (opened.engine, opened.catalogue_revision) == ("puppet", 7)
    assert opened.bytes_in is not None and opened.bytes_in > 50
    assert (settled.id, settled.outcome, settled.ended_by, settled.partial) == (opened.id, "ok", "model", False)
    assert (settled.usage.input_tokens, settled.usage.output_tokens, settled.usage.estimated) == (12, 3, False)
    assert settled.first_byte_seconds is not None and settled.stream_seconds is not None
    assert settled.bytes_out is not None and settled.bytes_out > 50


@requirement("P-TIME-1")
def test_the_limits_are_600_seconds_of_silence_and_900_in_all() -> None:
    assert CallLimits() == CallLimits(progress=600, overall=900)


@requirement("P-TIME-1")
def test_a_provider_that_stops_or_never_ends_is_given_up() -> None:
    async def work() -> None:
        never = asyncio.Event()
        for steps in ((never,), (say("a"), never)):
            place = house(Puppet(steps), limits=CallLimits(progress=0.05))
            exchange = await ask(place.agent, HELLO | {"stream": True})
            code = exchange.error()[1] if exchange.status != 200 else exchange.events()[-1][1]["code"]
            assert code == "errore_ai"
            assert (place.records.settled[0].outcome, place.records.settled[0].ended_by) == (
                "upstream_timeout",
                "gateway",
            )
            place.nothing_left()

    run(work())


@requirement("P-TIME-1")
def test_progress_that_goes_on_still_ends_at_the_overall_limit() -> None:
    async def work() -> None:
        gates = [asyncio.Event() for _ in range(50)]
        steps = [step for gate in gates for step in (gate, say("a"))]
        place = house(Puppet((*steps, *PLAIN)), limits=CallLimits(progress=5, overall=0.1))
        exchange, task = start(place.agent, HELLO | {"stream": True})
        for gate in gates[:20]:
            gate.set()
        await task
        assert exchange.events()[-1][1]["code"] == "errore_ai"
        place.nothing_left()

    run(work())
