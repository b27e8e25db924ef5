"""Read a request's body, never more of it than we would take, and never for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from crocevia.core.errors import Code, GatewayError, say

from .operation import Request

BODY_SECONDS: Final = 60.0  # for the whole of a JSON body
DISCARD_BYTES: Final = 40 * 1024 * 1024
DISCARD_SECONDS: Final = 5.0


class ClientGone(Exception):
    """The caller hung up before the body was complete."""


async def read_whole(request: Request, limit: int, seconds: float = BODY_SECONDS) -> bytes:
    """The whole body, in at most `seconds`. Raises GatewayError(TOO_LARGE) above `limit` bytes, ClientGone."""
    try:
        async with asyncio.timeout(seconds):
            return b"".join([piece async for piece in pieces(request, limit)])
    except TimeoutError:
        raise GatewayError(Code.INVALID_REQUEST, say("body_too_slow", seconds=int(seconds))) from None


async def pieces(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body as it comes. Raises GatewayError(TOO_LARGE) above `limit` bytes, ClientGone."""
    declared = request.header(b"content-length") or b""
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    size = 0
    while not request.complete:
        message = await request.receive()
        if message["type"] != "http.request":
            raise ClientGone
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        if piece:
            yield piece


def too_large(limit: int) -> GatewayError:
    """The refusal of what has more than `limit` bytes."""
    text = f"{limit // 2**20} MB" if limit >= 2**20 else f"{limit // 1024} KB"
    return GatewayError(Code.TOO_LARGE, say(Code.TOO_LARGE.value, limit=text))


async def discard(request: Request) -> None:
    """Throw away what a refused caller is still sending, for a while: else they would see a reset and no answer."""
    if request.complete or not (request.headers(b"content-length") or request.headers(b"transfer-encoding")):
        return
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while not request.complete and size < DISCARD_BYTES:
                message = await request.receive()
                if message["type"] != "http.request":
                    raise ClientGone
                size += len(message.get("body", b""))
