"""Send an answer in pieces, for as long as somebody may and wants to read it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from .errors import expected
from .operation import Headers, Request, Send, Stream


async def send_stream(request: Request, stream: Stream, send: Send, common: Headers) -> None:
    """Send the pieces until they end, the caller leaves, or the caller's key ends.

    Whatever the first piece raises is raised here, and nothing has been sent.
    """
    pieces = stream.chunks
    try:
        first = await anext(pieces, b"")
        await send({"type": "http.response.start", "status": stream.status, "headers": [*stream.headers, *common]})
        await _while_wanted(request, _write(stream, first, send, request))
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


async def _while_wanted(request: Request, writing: object) -> None:
    writer = asyncio.ensure_future(writing)  # type: ignore[call-overload]  # a coroutine, whatever its name
    watchers = [asyncio.create_task(_gone(request))]
    if request.principal is not None:
        watchers.append(asyncio.create_task(request.control.keys.ended(request.principal)))
    try:
        await asyncio.wait({writer, *watchers}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (writer, *watchers):
            task.cancel()
        await asyncio.gather(writer, *watchers, return_exceptions=True)


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


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
