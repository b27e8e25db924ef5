"""Vectors and pictures are admitted, cut and recorded like any call: once, on every path, with who ended it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crocevia.core.catalogue import ModelSpec
from crocevia.core.embeddings import Embedded, EmbeddingRequest
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.images import ImageRequest, ImageResult, ImageSetting, Picture
from crocevia.core.usage import Usage
from crocevia.runtime.embeddings import Embeddings
from crocevia.runtime.image_generation.generator import ImageGenerator
from tests.aio import run
from tests.doors.pepper.house import House, house


class Studio:
    """Paints and embeds; what comes of it is `play`'s."""

    name = "studio"

    def __init__(self, play: Callable[[], Awaitable[None]]) -> None:
        self.play = play
        self.deadlines: list[float] = []

    async def embed(self, request: EmbeddingRequest, *, deadline: float) -> Embedded:
        self.deadlines.append(deadline)
        await self.play()
        return Embedded((memoryview(b"\0\0\0\0"),), tokens=3)

    def settings(self, model: str) -> tuple[ImageSetting, ...]:
        return ()

    def check_request(self, request: ImageRequest) -> None: ...

    async def generate(
        self, request: ImageRequest, inputs: tuple[Picture, ...], mask: Picture | None, *, deadline: float
    ) -> ImageResult:
        self.deadlines.append(deadline)
        await self.play()
        return ImageResult(images=(), usage=Usage(input_tokens=3, output_tokens=0))


async def _nothing() -> None: ...


Ask = Callable[[House, Studio], Awaitable[Any]]
SPEC = ModelSpec(name="studio-1", engine="studio", upstream="s")


class Known:
    """A catalogue with one model."""

    current: Any

    def __init__(self) -> None:
        self.current = self
        self.models = {"studio-1": SPEC}
        self.engines: dict[str, Any] = {}


async def embed(place: House, studio: Studio) -> Any:
    known: Any = Known()
    source: Any = lambda name: studio  # noqa: E731
    return await Embeddings(place.gateway, known, source).embed("usr_1", "studio-1", ["a"], dimensions=None, bytes_in=9)


async def generate(place: House, studio: Studio) -> Any:
    source: Any = lambda name: studio  # noqa: E731
    return await ImageGenerator(place.gateway, source).generate(
        "usr_1", SPEC, ImageRequest(model="s", prompt="red"), (), None
    )


KINDS = pytest.mark.parametrize("asks", [embed, generate])


@KINDS
def test_one_that_comes_to_its_end_is_recorded_with_its_usage(asks: Ask) -> None:
    async def work() -> None:
        place = house()
        before = asyncio.get_running_loop().time()
        studio = Studio(_nothing)
        await asks(place, studio)
        place.nothing_left()
        [opened], [settled] = place.records.opened, place.records.settled
        assert (opened.user_id, opened.project, opened.model, opened.engine) == ("usr_1", None, "studio-1", "studio")
        assert opened.bytes_in and opened.catalogue_revision == 7
        assert (settled.outcome, settled.ended_by, settled.usage.input_tokens) == ("ok", "model", 3)
        assert 100 < studio.deadlines[0] - before < 400

    run(work())


@KINDS
@pytest.mark.parametrize(
    ("fault", "outcome", "ended_by"),
    [
        (GatewayError(Reason.UPSTREAM_FAILED), "upstream_failed", "model"),
        (GatewayError(Reason.UPSTREAM_TIMEOUT), "upstream_timeout", "model"),
        (GatewayError(Reason.REFUSED), "refused", "model"),
        (GatewayError(Reason.UNAVAILABLE), "unavailable", "gateway"),
        (RuntimeError("ours"), "internal", "gateway"),
    ],
)
def test_a_fault_is_recorded_with_who_ended_it(asks: Ask, fault: Exception, outcome: str, ended_by: str) -> None:
    async def fails() -> None:
        raise fault

    async def work() -> None:
        place = house()
        with pytest.raises(type(fault)):
            await asks(place, Studio(fails))
        place.nothing_left()
        assert [(end.outcome, end.ended_by) for end in place.records.settled] == [(outcome, ended_by)]

    run(work())


@KINDS
def test_one_under_way_is_counted_and_cut_when_the_server_drains(asks: Ask) -> None:
    async def work() -> None:
        place, begun = house(), asyncio.Event()

        async def lasts() -> None:
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(asks(place, Studio(lasts)))
        await begun.wait()
        assert place.gateway.active == 1
        place.gateway.drain(0.0)
        with pytest.raises(GatewayError) as failure:
            await task
        assert failure.value.code is Code.DRAINING
        place.nothing_left()
        assert [(end.outcome, end.ended_by) for end in place.records.settled] == [("draining", "gateway")]

    run(work())


@KINDS
def test_one_whose_task_is_cancelled_was_ended_by_the_gateway(asks: Ask) -> None:
    async def work() -> None:
        place, begun = house(), asyncio.Event()

        async def lasts() -> None:
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(asks(place, Studio(lasts)))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        place.nothing_left()
        assert [(end.outcome, end.ended_by) for end in place.records.settled] == [("draining", "gateway")]

    run(work())


@KINDS
@pytest.mark.parametrize(("state", "code"), [("draining", Code.DRAINING), ("failing", Code.UNAVAILABLE)])
def test_none_is_admitted_while_the_server_drains_or_its_store_takes_no_records(
    asks: Ask, state: str, code: Code
) -> None:
    async def work() -> None:
        place, asked = house(), []

        async def noted() -> None:
            asked.append(1)

        if state == "draining":
            place.gateway.drain()
        else:
            place.records.failing = True
        with pytest.raises(GatewayError) as failure:
            await asks(place, Studio(noted))
        assert failure.value.code is code
        place.nothing_left()
        assert not asked and not place.records.opened

    run(work())
