"""Send a chat's events for as long as somebody may and wants to read them."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from .errors import expected
from .operation import Headers, Live, Receive, Request, Send


async def send_live(request: Request, live: Live, send: Send, common: Headers) -> None:
    """Until the caller leaves, the caller's key ends, or the stream is over. Always a proper end of the answer."""
    own = {name for name, _ in live.headers}
    headers = [*live.headers, *(pair for pair in common if pair[0] not in own)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    assert request.principal is not None
    writer = asyncio.create_task(_write(live, send, request))
    watchers = (
        asyncio.create_task(_gone(request.receive)),
        asyncio.create_task(request.control.keys.ended(request.principal)),
        asyncio.create_task(_over(live.over)),
    )
    try:
        await asyncio.wait((writer, *watchers), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (writer, *watchers):
            task.cancel()
        await asyncio.gather(writer, *watchers, return_exceptions=True)
    with suppress(OSError, RuntimeError):
        await send({"type": "http.response.body", "body": b""})


async def _write(live: Live, send: Send, request: Request) -> None:
    async def write(data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})

    try:
        await live.run(write)
    except Exception as error:  # the status has been said: all that is left is to end
        expected(error, request.operation.id)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _over(event: asyncio.Event) -> None:
    await event.wait()
