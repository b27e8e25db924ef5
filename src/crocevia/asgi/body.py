"""Read a request's body, never more of it than we would take, and never for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final, Protocol

from crocevia.asgi.types import Receive
from crocevia.core.errors import GatewayError, Reason

UPLOAD_SECONDS: Final = 900.0  # for the whole of a body, from the wait for its first piece on


class ClientGone(Exception):
    """The caller hung up before the body was complete."""


class Incoming(Protocol):
    """A body on its way."""

    complete: bool

    async def receive(self) -> dict[str, Any]: ...


async def read_body(
    receive: Receive, limit: int, declared: int | None, seconds: float | None = UPLOAD_SECONDS
) -> bytes:
    """The whole body. declared: its Content-Length, if any. seconds: None where nothing is left to wait for.

    Raises GatewayError: TOO_LARGE above `limit` bytes, INVALID_REQUEST after `seconds`; ClientGone.
    """
    if declared is not None and declared > limit:
        raise too_large(limit)
    try:
        async with asyncio.timeout(seconds):
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                body: bytes = message.get("body", b"")
                if len(body) <= limit:
                    return body
                raise too_large(limit)
            return await _collect(receive, message, limit)
    except TimeoutError:
        raise too_slow(seconds or 0) from None


async def _collect(receive: Receive, message: dict[str, Any], limit: int) -> bytes:
    body = bytearray()
    while message["type"] == "http.request":
        body += message.get("body", b"")
        if len(body) > limit:
            body.clear()
            raise too_large(limit)
        if not message.get("more_body"):
            return bytes(body)
        message = await receive()
    raise ClientGone


async def body_pieces(incoming: Incoming, limit: int, declared: int | None) -> AsyncIterator[bytes]:
    """The body as it comes. Raises GatewayError(TOO_LARGE) above `limit` bytes, ClientGone."""
    if declared is not None and declared > limit:
        raise too_large(limit)
    size = 0
    while not incoming.complete:
        message = await incoming.receive()
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
    return GatewayError(Reason.TOO_LARGE, limit=text)


def too_slow(seconds: float) -> GatewayError:
    """The refusal of a body that takes longer than `seconds`."""
    return GatewayError(Reason.BODY_TOO_SLOW, seconds=int(seconds))
