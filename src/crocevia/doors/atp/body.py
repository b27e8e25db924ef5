"""Read a request's body, never more of it than we would take, and never for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from crocevia.asgi import body
from crocevia.asgi.body import ClientGone, too_large
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.atp.operation import Request

BODY_SECONDS: Final = 60.0  # for the whole of a JSON body


async def read_whole(request: Request, limit: int, seconds: float = BODY_SECONDS) -> bytes:
    """The whole body, in at most `seconds`. Raises GatewayError(TOO_LARGE) above `limit` bytes, ClientGone."""
    try:
        async with asyncio.timeout(seconds):
            return b"".join([piece async for piece in pieces(request, limit)])
    except TimeoutError:
        raise GatewayError(Reason.BODY_TOO_SLOW, seconds=int(seconds)) from None


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


async def discard(request: Request) -> None:
    """What a refused caller is still sending, if anything. Raises ClientGone."""
    if not request.complete and (request.headers(b"content-length") or request.headers(b"transfer-encoding")):
        await body.discard(request.receive)
