"""Engines against a provider on loopback, for the tests of the driver."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from crocevia.core.answers import fold
from crocevia.core.calls import Batches, Engine, ModelRequest
from crocevia.core.errors import GatewayError
from crocevia.core.events import ModelEvent
from crocevia.core.messages import user
from crocevia.engines.upstream.driver import UpstreamEngine
from crocevia.engines.upstream.http import HttpClient, Timeouts
from crocevia.engines.upstream.retry import RetryPolicy
from tests.aio import run
from tests.fakes.provider import Play, Provider, play

from .dialects import BASES, dialect, transcript

KINDS = sorted(BASES)
ASK = ModelRequest(model="m", messages=(user("the secret prompt"),))
Gate = asyncio.Event


def good(kind: str, name: str = "text") -> Play:
    return play(transcript(kind, name))


def played(*plays: Play, timeouts: Timeouts | None = None, attempts: int = 3) -> Callable[..., None]:
    """Run a test body with a client that retries at once and a provider, and see that nothing is left behind."""

    def decorate(work: Callable[[Callable[[str], Engine], Provider], Awaitable[None]]) -> None:
        async def main() -> None:
            async with Provider(*plays) as provider:
                http = HttpClient(timeouts)

                def engine(kind: str) -> Engine:
                    retry = RetryPolicy(attempts=attempts, base=0)
                    return UpstreamEngine("e", dialect(kind, provider.url), http, retry)

                try:
                    await work(engine, provider)
                finally:
                    await http.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        run(main())

    return decorate


def ask(engine: Engine, seconds: float = 5, asked: ModelRequest = ASK) -> Batches:
    return engine.call(asked, deadline=asyncio.get_running_loop().time() + seconds)


async def events_of(engine: Engine, seconds: float = 5, asked: ModelRequest = ASK) -> list[ModelEvent]:
    return [event async for batch in ask(engine, seconds, asked) for event in batch]


async def failure_of(engine: Engine, seconds: float = 5) -> tuple[list[ModelEvent], GatewayError]:
    """What was said and how it failed. Fails the test when it does not fail."""
    said: list[ModelEvent] = []
    with pytest.raises(GatewayError) as failure:
        async for batch in ask(engine, seconds):
            said += batch
    return said, failure.value


def text(events: list[ModelEvent]) -> str:
    return fold(events).text
