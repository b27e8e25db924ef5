"""What a caller may ask about tools, form and sampling, as each dialect says it; what a model rejects is left out."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from msgspec import Raw

from crocevia.core.answers import AnswerFold
from crocevia.core.calls import AnswerFormat, Rejected, Sampling, ToolChoice
from crocevia.core.errors import Code, GatewayError
from crocevia.core.messages import Tool
from crocevia.engines.openai.chat import ChatDialect
from crocevia.engines.upstream import sampling
from crocevia.engines.upstream.driver import UpstreamEngine
from crocevia.engines.upstream.errors import ParameterRefused
from crocevia.engines.upstream.http import HttpClient
from tests.aio import run
from tests.engines.dialects import sent as sent_to
from tests.fakes.provider import Provider, answer, play
from tests.fakes.requests import model_request

from .dialects import BASES, dialect

TOOL = Tool(name="look", description="", parameters=Raw(b'{"type":"object","properties":{}}'))
SCHEMA = Raw(b'{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}')
FORMAT = AnswerFormat(param="text.format", name="out", schema=SCHEMA, strict=True)
WARM = Sampling(temperature=0.5, top_p=0.9, seed=7, stop=("END",))


def body(kind: str, **asked: Any) -> Any:
    request = model_request(**{"tools": (TOOL,), **asked})
    return json.loads(sent_to(dialect(kind), request))


CHOICES: list[tuple[str, ToolChoice, Any]] = [
    ("anthropic", ToolChoice(mode="none"), {"type": "none"}),
    ("anthropic", ToolChoice(mode="required"), {"type": "any"}),
    ("anthropic", ToolChoice(mode="required", name="look"), {"type": "tool", "name": "look"}),
    ("openai-chat", ToolChoice(mode="none"), "none"),
    ("openai-chat", ToolChoice(mode="required"), "required"),
    (
        "openai-chat",
        ToolChoice(mode="required", name="look"),
        {"type": "function", "function": {"name": "look"}},
    ),
    ("openai-responses", ToolChoice(mode="none"), "none"),
    ("openai-responses", ToolChoice(mode="required"), "required"),
    ("openai-responses", ToolChoice(mode="required", name="look"), {"type": "function", "name": "look"}),
]


@pytest.mark.parametrize(("kind", "choice", "spelled"), CHOICES)
def test_a_tool_choice_is_the_provider_s_own(kind: str, choice: ToolChoice, spelled: Any) -> None:
    assert body(kind, tool_choice=choice)["tool_choice"] == spelled


@pytest.mark.parametrize("kind", sorted(BASES))
def test_what_is_the_default_is_not_said(kind: str) -> None:
    assert not {"tool_choice", "parallel_tool_calls", "response_format", "text", "output_config"} & body(kind).keys()


def test_one_call_at_a_time_is_the_provider_s_own() -> None:
    assert body("openai-chat", parallel_tool_calls=False)["parallel_tool_calls"] is False
    assert body("openai-responses", parallel_tool_calls=False)["parallel_tool_calls"] is False
    choice = body("anthropic", parallel_tool_calls=False)["tool_choice"]
    assert choice == {"type": "auto", "disable_parallel_tool_use": True}


def test_who_must_call_a_tool_does_not_think_first() -> None:
    asked = {"model": "claude-opus-5-5", "reasoning": "on", "tool_choice": ToolChoice(mode="required")}
    assert body("anthropic", **asked).get("thinking", {}).get("type") not in ("enabled", "adaptive")


def test_a_schema_goes_where_the_provider_wants_it() -> None:
    schema = json.loads(bytes(SCHEMA))
    named = {"name": "out", "schema": schema, "strict": True}
    assert body("openai-chat", format=FORMAT)["response_format"] == {"type": "json_schema", "json_schema": named}
    assert body("openai-responses", format=FORMAT)["text"] == {"format": {"type": "json_schema", **named}}
    assert body("anthropic", format=FORMAT)["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


def test_any_object_is_asked_for_or_refused_with_the_parameter_s_name() -> None:
    anything = AnswerFormat(param="response_format")
    assert body("openai-chat", format=anything)["response_format"] == {"type": "json_object"}
    assert body("openai-responses", format=anything)["text"] == {"format": {"type": "json_object"}}
    with pytest.raises(GatewayError) as refused:
        body("anthropic", format=anything)
    assert (refused.value.code, refused.value.param) == (Code.UNSUPPORTED, "response_format")


ANSWER = b'{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}'
REFUSAL = b'{"error":{"type":"invalid_request_error","param":"%s","code":"unsupported_parameter"}}'


async def asked(provider: Provider, sampling: Sampling, times: int = 1, stream: bool = False) -> list[tuple[str, ...]]:
    """What was left out of each of `times` calls."""
    http = HttpClient()
    engine = UpstreamEngine("e", ChatDialect(f"{provider.url}/v1", None), http)
    left_out = []
    try:
        for _ in range(times):
            fold = AnswerFold()
            request = model_request(stream=stream, sampling=sampling)
            async for batch in engine.call(request, deadline=asyncio.get_running_loop().time() + 5):
                for event in batch:
                    fold.add(event)
            assert fold.answer().text == "hi"
            left_out.append(fold.left_out)
    finally:
        await http.close()
    return left_out


def test_what_a_model_rejects_is_left_out_named_and_remembered() -> None:
    async def scene() -> None:
        plays = [answer(400, REFUSAL % b"temperature"), answer(400, REFUSAL % b"top_p"), answer(200, ANSWER)]
        async with Provider(*plays) as provider:
            assert await asked(provider, WARM, times=2) == [("temperature", "top_p")] * 2
            sent = [request.json() for request in provider.requests]
        assert [("temperature" in one, "top_p" in one) for one in sent] == [
            (True, True),
            (False, True),
            (False, False),
            (False, False),
        ]
        assert all(one["seed"] == 7 and one["stop"] == ["END"] for one in sent)

    run(scene())


def test_a_refusal_about_something_else_is_a_refusal() -> None:
    async def scene() -> None:
        async with Provider(answer(400, REFUSAL % b"temperature")) as provider:
            with pytest.raises(GatewayError) as refused:
                await asked(provider, Sampling(top_p=0.5))
            assert refused.value.code is Code.UPSTREAM_REJECTED and len(provider.requests) == 1

    run(scene())


def test_a_stream_says_what_was_left_out_before_anything_else() -> None:
    async def scene() -> None:
        chunk = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
        async with Provider(answer(400, REFUSAL % b"seed"), play(chunk, b"data: [DONE]\n\n")) as provider:
            assert await asked(provider, WARM, stream=True) == [("seed",)]

    run(scene())


def test_a_model_that_thinks_keeps_only_what_it_can_take() -> None:
    thinking = model_request(model="claude-opus-5-5", reasoning="on", sampling=WARM)
    assert dialect("anthropic").takes(thinking) == {"stop"}


@pytest.mark.parametrize(
    "refusal",
    [
        b'{"error":{"type":"invalid_request_error","message":"temperature: range: 0..1"}}',
        b'{"error":{"type":"invalid_request_error","param":"temperature","code":"decimal_above_max_value"}}',
        b'{"error":{"type":"invalid_request_error","message":"tools.0: `set_temperature` is not supported"}}',
        b'{"error":{"type":"invalid_request_error","message":"you wrote: temperature is not supported"}}',
    ],
)
def test_one_caller_s_refused_value_takes_a_parameter_from_nobody(refusal: bytes) -> None:
    async def scene() -> None:
        async with Provider(answer(400, refusal)) as provider:
            with pytest.raises(GatewayError) as refused:
                await asked(provider, WARM)
            assert refused.value.code is Code.UPSTREAM_REJECTED and refused.value.param is None
            assert len(provider.requests) == 1

    run(scene())


@pytest.mark.parametrize(
    "refusal",
    [
        b'{"error":{"message":"`temperature` is deprecated for this model."}}',
        b'{"error":{"param":"temperature","code":"unsupported_parameter"}}',
    ],
)
def test_a_parameter_that_a_model_does_not_take_at_all_is_left_out(refusal: bytes) -> None:
    async def scene() -> None:
        async with Provider(answer(400, refusal), answer(200, ANSWER)) as provider:
            assert await asked(provider, WARM) == [("temperature",)]

    run(scene())


def test_what_was_learned_of_a_model_is_believed_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    request, rejected = model_request(sampling=WARM), Rejected()
    assert sampling.refused(request, ParameterRefused("temperature", always=True), rejected) == "temperature"
    assert sampling.narrowed(request, sampling.ALL, rejected)[1] == ("temperature",)
    later = time.monotonic() + sampling.REMEMBERED_SECONDS + 1
    monkeypatch.setattr("crocevia.engines.upstream.sampling.time.monotonic", lambda: later)
    assert sampling.narrowed(request, sampling.ALL, rejected)[1] == ()


@pytest.mark.parametrize("code", [b"null", b'""', b'"unsupported_value"'])
def test_a_value_that_a_provider_refuses_is_left_out_of_that_call_alone(code: bytes) -> None:
    refusal = answer(400, b'{"error":{"param":"temperature","code":%b}}' % code)

    async def scene() -> None:
        async with Provider(refusal, answer(200, ANSWER), answer(200, ANSWER)) as provider:
            assert await asked(provider, WARM, times=2) == [("temperature",), ()]
            assert ["temperature" in request.json() for request in provider.requests] == [True, False, True]

    run(scene())
