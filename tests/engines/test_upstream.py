"""The driver over real sockets: batches, retries, failures, cancellation, and what it must never say."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast, get_args

import pytest

from crocevia.core.answers import fold
from crocevia.core.calls import Engine
from crocevia.core.catalogue import ENGINE_TRAITS, EngineKind, EngineSpec
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import Stopped, StopReason, TextDelta, UsageReported
from crocevia.engines.context import EngineContext
from crocevia.engines.registry import KINDS as REGISTERED
from crocevia.engines.registry import build
from crocevia.engines.upstream.driver import UpstreamEngine
from crocevia.engines.upstream.http import HttpClient, Timeouts
from crocevia.engines.upstream.retry import RetryPolicy
from tests.aio import run
from tests.fakes.provider import RESET, Provider, answer, play, silence
from tests.fakes.requests import model_request

from .dialects import BASES, KEY, dialect, names, transcript
from .playing import ASK, KINDS, Gate, ask, events_of, failure_of, good, played, text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_call_reaches_the_provider_and_its_answer_comes_back(kind: str, stream: bool) -> None:
    body = transcript(kind, "text", "json")

    @played(good(kind) if stream else answer(200, body))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        asked = model_request(messages=ASK.messages, stream=stream)
        result = fold(await events_of(engine(kind), asked=asked))
        assert (result.text, result.stop) == ("Perché no? 🙂", StopReason.END)
        sent = provider.requests[0]
        assert sent.method == "POST"
        assert (
            sent.path
            == {
                "anthropic": "/v1/messages",
                "openai-chat": "/v1/chat/completions",
                "openai-responses": "/v1/responses",
            }[kind]
        )
        assert sent.json()["stream"] is stream
        assert KEY in sent.headers["x-api-key" if kind == "anthropic" else "authorization"]
        assert ("anthropic-version" in sent.headers) is (kind == "anthropic")


@pytest.mark.parametrize("kind", KINDS)
def test_one_body_is_one_batch(kind: str) -> None:
    @played(answer(200, transcript(kind, "parallel_tools", "json")))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        asked = model_request(messages=ASK.messages, stream=False)
        batches = [batch async for batch in ask(engine(kind), asked=asked)]
        assert len(batches) == 1
        assert len(fold(batches[0]).tool_calls) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_where_a_stream_was_asked_for_is_read_as_one(kind: str) -> None:
    @played(answer(200, transcript(kind, "text", "json")))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        assert text(await events_of(engine(kind))) == "Perché no? 🙂"


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_does_not_depend_on_how_the_network_cuts_it(kind: str, size: int) -> None:
    @played(good(kind, "parallel_tools").split(size))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        assert len(fold(await events_of(engine(kind))).tool_calls) == 3


def test_a_read_is_a_batch_and_is_not_kept_waiting_for_the_next() -> None:
    gate = Gate()
    pieces = transcript("openai-chat", "text").split(b"\n\n")
    first, rest = b"\n\n".join(pieces[:4]) + b"\n\n", b"\n\n".join(pieces[4:])

    @played(play(first, gate, rest))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        call = ask(engine("openai-chat"))
        assert await anext(call) == [TextDelta("Perché "), TextDelta("no? 🙂")]
        gate.set()
        rest_of = [event async for batch in call for event in batch]
        assert [type(event) for event in rest_of] == [UsageReported, Stopped]


@pytest.mark.parametrize("kind", KINDS)
def test_an_overload_before_anything_was_said_is_tried_again_and_gives_one_clean_answer(kind: str) -> None:
    first = [name for of, name in names("sse") if of == kind and name in ("overloaded_first", "overloaded_after_start")]

    @played(*(good(kind, name) for name in first), good(kind))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        result = fold(await events_of(engine(kind)))
        assert result.text == "Perché no? 🙂"
        assert len(provider.requests) == len(first) + 1
        assert len({request.body for request in provider.requests}) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_overload_after_two_deltas_fails_at_once(kind: str) -> None:
    @played(good(kind, "overloaded_after_two"), good(kind))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        said, failure = await failure_of(engine(kind))
        assert text(said) == "One two "
        assert failure.code is Code.UPSTREAM_OVERLOADED
        assert failure.retryable
        assert len(provider.requests) == 1


def test_a_model_that_thinks_in_silence_is_paid_for_and_not_asked_again() -> None:
    stream = transcript("anthropic", "silent_thinking").split(b"\n\n")
    begun = b"\n\n".join(stream[:2]) + b"\n\n" + transcript("anthropic", "overloaded_first")

    @played(play(begun), good("anthropic"))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        said, failure = await failure_of(engine("anthropic"))
        assert fold(said).usage.input_tokens == 25
        assert failure.code is Code.UPSTREAM_OVERLOADED
        assert len(provider.requests) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["cancel", "close"])
@pytest.mark.parametrize("when", ["before the status", "before the first byte", "in the middle", "while retrying"])
def test_a_caller_that_leaves_closes_the_provider_within_a_second(kind: str, how: str, when: str) -> None:
    gate = Gate()
    begun = b"\n\n".join(transcript(kind, "text").split(b"\n\n")[:6]) + b"\n\n"
    plays = {
        "before the status": [silence(gate)],
        "before the first byte": [play(gate)],
        "in the middle": [play(begun, gate)],
        "while retrying": [answer(503, b"{}"), silence(gate)],
    }[when]

    @played(*plays)
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        call = ask(engine(kind))

        async def consume() -> None:
            async for _ in call:
                reading.set()

        reading = asyncio.Event()
        if when == "in the middle" and how == "close":
            await anext(call)
            await call.aclose()
        else:
            task = asyncio.create_task(consume())
            await provider.request(len(plays) - 1)
            if when == "in the middle":
                await reading.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        async with asyncio.timeout(1):
            await provider.requests[-1].ended.wait()
        assert provider.requests[-1].aborted


def test_fifty_abandoned_calls_leave_the_pool_as_it_was() -> None:
    gate = Gate()
    begun = b"\n\n".join(transcript("openai-chat", "text").split(b"\n\n")[:3]) + b"\n\n"

    @played(*[play(begun, gate)] * 50, good("openai-chat"))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        for _ in range(50):
            call = ask(engine("openai-chat"))
            await anext(call)
            await call.aclose()
        async with asyncio.timeout(1):
            assert text(await events_of(engine("openai-chat"))) == "Perché no? 🙂"
            for request in provider.requests[:50]:
                await request.ended.wait()
        assert provider.open == 1


@pytest.mark.parametrize("kind", KINDS)
def test_calls_one_after_another_share_a_connection(kind: str) -> None:
    @played(good(kind))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        for _ in range(5):
            await events_of(engine(kind))
            await asyncio.sleep(0.02)
        assert len(provider.requests) == 5
        assert provider.open == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_provider_that_says_nothing_is_a_timeout(kind: str) -> None:
    gate = Gate()

    @played(silence(gate), timeouts=Timeouts(first_byte=0.05))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        _, failure = await failure_of(engine(kind))
        assert failure.code is Code.UPSTREAM_TIMEOUT
        assert len(provider.requests) == 1


def test_nothing_reachable_is_tried_again_and_then_said() -> None:
    async def work() -> None:
        http = HttpClient()
        engine = UpstreamEngine("e", dialect("anthropic", "http://127.0.0.1:1"), http, RetryPolicy(base=0))
        try:
            _, failure = await failure_of(engine)
            assert (failure.code, failure.message.reason) == (Code.UPSTREAM_FAILED, "upstream_unreachable")
            with pytest.raises(GatewayError):
                await engine.probe()
        finally:
            await http.close()

    run(work())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("status", "fine"), [(200, True), (404, True), (401, False), (500, False)])
def test_a_probe_asks_for_the_models_and_costs_nothing(kind: str, status: int, fine: bool) -> None:
    @played(answer(status, b"{}"))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        if fine:
            await engine(kind).probe()
        else:
            with pytest.raises(GatewayError):
                await engine(kind).probe()
        sent = provider.requests[0]
        assert (sent.method, sent.path.split("?")[0], sent.body) == ("GET", "/v1/models", b"")


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_and_the_prompt_appear_in_no_error_no_log_and_no_repr(
    kind: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    body = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()

    @played(answer(401, body), answer(400, body), good(kind, "without_end"), play(RESET), answer(200, body), attempts=1)
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        one = engine(kind)
        shown.extend([repr(one), str(vars(one))])
        for _ in range(5):
            _, failure = await failure_of(one)
            chain: BaseException | None = failure
            while chain is not None:
                shown.append(f"{chain!r} {chain} {getattr(chain, 'message', '')}")
                chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)

    shown += [caplog.text, *capfd.readouterr()]
    assert KEY not in "".join(shown)
    assert "secret prompt" not in "".join(shown)


@pytest.mark.parametrize("kind", KINDS)
def test_the_registry_builds_what_was_declared(kind: str) -> None:
    @played(good(kind))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        http = HttpClient()
        context = EngineContext(http=http, models_dir=Path("models"), api_key=KEY)
        assert KEY not in repr(context)
        spec = EngineSpec(name="claude", kind=cast(EngineKind, kind), base_url=provider.url + BASES[kind])
        built = build(spec, context)
        assert (built.name, built.dialect) == ("claude", "plain" if kind == "openai-chat" else kind)
        assert text(await events_of(built)) == "Perché no? 🙂"
        await built.close()
        await http.close()


def test_every_declarable_kind_has_its_module() -> None:
    assert set(REGISTERED) == set(ENGINE_TRAITS) == set(get_args(EngineKind))
    for place in REGISTERED.values():
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(module), function))


def test_a_kind_is_loaded_only_when_it_is_used() -> None:
    program = (
        "import sys, crocevia.engines.registry; heavy = ('aiohttp', 'anthropic', 'httptools');"
        "print([module for module in sys.modules if any(name in module for name in heavy)])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert shown.stdout.strip() == "[]"
