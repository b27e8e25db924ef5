"""Read a request's body, never more of it than we would take."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from crocevia.asgi.types import Receive
from crocevia.core.errors import GatewayError, Reason

UPLOAD_SECONDS: Final = 900.0  # for the whole of a body, from the wait for its first piece on
DISCARD_BYTES: Final = 40 * 1024 * 1024
DISCARD_SECONDS: Final = 5.0


class ClientGone(Exception):
    """The caller hung up before the body was complete."""


async def read_body(receive: Receive, limit: int, declared: int | None, *, asks: bool = False) -> bytes:
    """The whole body. declared: its Content-Length, if any. asks: the caller sends none before it is told to.

    Raises GatewayError(TOO_LARGE) above `limit` bytes, after having read on for a while: a caller that is still
    writing would see a reset instead of the answer. Raises GatewayError(INVALID_REQUEST) after UPLOAD_SECONDS, and
    ClientGone.
    """
    if declared is not None and declared > limit:
        if not asks:
            await discard(receive)
        raise too_large(limit)
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                body: bytes = message.get("body", b"")
                if len(body) <= limit:
                    return body
                raise too_large(limit)
            return await _collect(receive, message, limit)
    except TimeoutError:
        raise GatewayError(Reason.BODY_TOO_SLOW, seconds=int(UPLOAD_SECONDS)) from None


async def _collect(receive: Receive, message: dict[str, Any], limit: int) -> bytes:
    body = bytearray()
    while message["type"] == "http.request":
        body += message.get("body", b"")
        if len(body) > limit:
            size = len(body)
            body.clear()
            if message.get("more_body"):
                await discard(receive, size)
            raise too_large(limit)
        if not message.get("more_body"):
            return bytes(body)
        message = await receive()
    raise ClientGone


async def discard(receive: Receive, size: int = 0) -> None:
    """Throw away what a refused caller still sends, for a while: else they would see a reset and no answer.

    size: bytes so far. Raises ClientGone.
    """
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            while size < DISCARD_BYTES:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientGone
                if not message.get("more_body"):
                    return
                size += len(message.get("body", b""))
    except TimeoutError:
        return


def too_large(limit: int) -> GatewayError:
    """The refusal of what has more than `limit` bytes."""
    text = f"{limit // 2**20} MB" if limit >= 2**20 else f"{limit // 1024} KB"
    return GatewayError(Reason.TOO_LARGE, limit=text)
