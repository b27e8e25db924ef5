"""The driver over real sockets: what a provider's refusals and cuts become, and when it is asked again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from crocevia.core.calls import Engine
from crocevia.core.errors import Code
from tests.fakes.provider import CUT, RESET, Provider, answer, play

from .dialects import transcript
from .playing import KINDS, events_of, failure_of, good, played, text

STATUSES: list[tuple[int, dict[str, Any], Code, int]] = [
    (400, {"type": "invalid_request_error"}, Code.UPSTREAM_REJECTED, 1),
    (400, {"type": "invalid_request_error", "code": "content_policy_violation"}, Code.REFUSED, 1),
    (401, {"type": "invalid_request_error", "code": "invalid_api_key"}, Code.UPSTREAM_FAILED, 1),
    (401, {"type": "authentication_error"}, Code.UPSTREAM_FAILED, 1),
    (402, {"type": "billing_error"}, Code.UPSTREAM_FAILED, 1),
    (403, {"type": "permission_error"}, Code.UPSTREAM_FAILED, 1),
    (404, {"type": "not_found_error"}, Code.UPSTREAM_REJECTED, 1),
    (408, {}, Code.UPSTREAM_TIMEOUT, 3),
    (413, {"type": "request_too_large"}, Code.UPSTREAM_REJECTED, 1),
    (422, {}, Code.UPSTREAM_REJECTED, 1),
    (429, {"type": "rate_limit_error"}, Code.UPSTREAM_OVERLOADED, 3),
    (429, {"type": "insufficient_quota", "code": "insufficient_quota"}, Code.UPSTREAM_FAILED, 1),
    (500, {"type": "api_error"}, Code.UPSTREAM_FAILED, 3),
    (502, {}, Code.UPSTREAM_FAILED, 3),
    (503, {}, Code.UPSTREAM_OVERLOADED, 3),
    (504, {}, Code.UPSTREAM_FAILED, 3),
    (529, {"type": "overloaded_error"}, Code.UPSTREAM_OVERLOADED, 3),
    (302, {}, Code.UPSTREAM_FAILED, 1),
    (418, {}, Code.UPSTREAM_REJECTED, 1),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("status", "error", "code", "calls"), STATUSES)
def test_a_status_is_classified_and_tried_again_only_when_that_is_safe(
    kind: str, status: int, error: dict[str, Any], code: Code, calls: int
) -> None:
    body = json.dumps({"error": {**error, "message": "secret words of the provider"}}).encode()

    @played(answer(status, body))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        said, failure = await failure_of(engine(kind))
        assert said == []
        assert failure.code is code
        assert len(provider.requests) == calls
        assert "secret" not in repr(failure) + str(failure) + str(failure.message)


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[1]", b'{"error":"text"}', b'{"error":[]}', b"\xff", b"x" * 200_000]
)
def test_an_unreadable_refusal_is_classified_by_its_status(status: int, body: bytes) -> None:
    @played(answer(status, body), attempts=1)
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        _, failure = await failure_of(engine("openai-chat"))
        assert failure.code is (Code.UPSTREAM_REJECTED if status == 400 else Code.UPSTREAM_FAILED)


def test_a_retry_after_beyond_patience_is_handed_to_the_caller() -> None:
    @played(answer(429, b"{}", Retry_After="3600"))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        _, failure = await failure_of(engine("anthropic"))
        assert (failure.code, failure.retry_after) == (Code.UPSTREAM_OVERLOADED, 3600)
        assert len(provider.requests) == 1


def test_a_retry_after_beyond_the_deadline_is_not_waited_for() -> None:
    @played(answer(503, b"{}", Retry_After="2"))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        _, failure = await failure_of(engine("anthropic"), seconds=1)
        assert failure.retry_after == 2
        assert len(provider.requests) == 1


def test_a_retry_after_within_the_deadline_is_waited_for() -> None:
    @played(answer(503, b"{}", Retry_After="1"), good("anthropic"))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        started = asyncio.get_running_loop().time()
        assert text(await events_of(engine("anthropic"))) == "Perché no? 🙂"
        assert asyncio.get_running_loop().time() - started >= 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [None, CUT, RESET])
@pytest.mark.parametrize("before", [0, 1, 5, 9])
def test_a_stream_without_its_end_is_one_failure_after_what_was_said(kind: str, end: str | None, before: int) -> None:
    pieces = transcript(kind, "without_end").split(b"\n\n")[:before]
    steps: list[Any] = [b"".join(piece + b"\n\n" for piece in pieces)] if pieces else []
    if end is not None:
        steps.append(end)

    @played(play(*steps))
    async def _(engine: Callable[[str], Engine], provider: Provider) -> None:
        _, failure = await failure_of(engine(kind))
        assert failure.code is Code.UPSTREAM_FAILED
        assert len(provider.requests) == 1
