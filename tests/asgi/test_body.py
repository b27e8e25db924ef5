"""A body is read whole, bounded in size and in time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crocevia.asgi.body import ClientGone, read_body
from crocevia.core.errors import Code, GatewayError
from tests.aio import run


def piece(data: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


def read(*messages: dict[str, Any], limit: int = 8, seconds: float = 10.0) -> bytes:
    """What `read_body` makes of these messages, after which the caller says nothing more."""
    coming = list(messages)

    async def receive() -> dict[str, Any]:
        if not coming:
            await asyncio.Event().wait()
        return coming.pop(0)

    return run(read_body(receive, limit, None, seconds))


def test_pieces_are_one_body() -> None:
    assert read(piece(b"ab", False)) == b"ab"
    assert read(piece(b"ab", True), piece(b"", True), piece(b"cd", False)) == b"abcd"


@pytest.mark.parametrize("before", [(), (piece(b"ab", True),)], ids=["not a byte", "half of it"])
def test_a_caller_who_falls_silent_is_not_waited_for_without_end(before: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(GatewayError) as failure:
        read(*before, seconds=0.05)
    assert (failure.value.code, failure.value.message.reason) == (Code.INVALID_REQUEST, "body_too_slow")


@pytest.mark.parametrize("before", [(), (piece(b"ab", True),)], ids=["not a byte", "half of it"])
def test_a_caller_who_left_is_gone(before: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(ClientGone):
        read(*before, {"type": "http.disconnect"})


@pytest.mark.parametrize("pieces", [(piece(b"a" * 9, False),), (piece(b"a" * 8, True), piece(b"a", False))])
def test_a_body_above_the_limit_is_refused(pieces: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(GatewayError) as failure:
        read(*pieces)
    assert failure.value.code is Code.TOO_LARGE
