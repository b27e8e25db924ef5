"""Answers in pieces, for as long as somebody may and wants to read them."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any

from crocevia.asgi.hangup import gone, until_first
from crocevia.asgi.types import Headers, Send
from crocevia.doors.atp.errors import expected
from crocevia.doors.atp.operation import Live, Request, Stream


async def send_stream(request: Request, stream: Stream, send: Send, common: Headers) -> None:
    """Send the pieces until they end, the caller leaves, or the caller's key ends.

    Whatever the first piece raises is raised here, and nothing has been sent.
    """
    pieces = stream.chunks
    try:
        first = await anext(pieces, b"")
        await send({"type": "http.response.start", "status": stream.status, "headers": [*stream.headers, *common]})
        await until_first(_write(stream, first, send, request), *_endings(request))
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


async def send_live(request: Request, live: Live, send: Send, common: Headers) -> None:
    """Until the caller leaves, the caller's key ends, or the stream is over. Always a proper end of the answer."""
    own = {name for name, _ in live.headers}
    headers = [*live.headers, *(pair for pair in common if pair[0] not in own)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await until_first(_run(live, send, request), *_endings(request), live.over.wait())
    with suppress(OSError, RuntimeError):
        await send({"type": "http.response.body", "body": b""})


def _endings(request: Request) -> list[Coroutine[Any, Any, object]]:
    """What ends an answer that is under way: its reader leaves, or may not read any more."""
    leaving = gone(request.receive)
    return [leaving] if request.principal is None else [leaving, request.control.keys.ended(request.principal)]


async def _write(stream: Stream, first: bytes, send: Send, request: Request) -> None:
    try:
        await send({"type": "http.response.body", "body": first, "more_body": True})
        async for piece in stream.chunks:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except Exception as error:  # the status has been said: all that is left is to end
        expected(error, request.operation.id)
    finally:
        with suppress(OSError, RuntimeError):
            await send({"type": "http.response.body", "body": b""})


async def _run(live: Live, send: Send, request: Request) -> None:
    def write(data: bytes) -> Awaitable[None]:
        return send({"type": "http.response.body", "body": data, "more_body": True})

    try:
        await live.run(write)
    except Exception as error:  # the status has been said: all that is left is to end
        expected(error, request.operation.id)
