"""`POST /v1/responses`: one answer, as JSON or as an event stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crocevia.asgi.answers import reply
from crocevia.asgi.stream import EventStream
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core import json
from crocevia.core.errors import GatewayError
from crocevia.runtime.gateway import Call, Cut

from . import head, plan
from .background import Background
from .encode import DONE, Frame, sse
from .errors import refuse
from .plan import Desk
from .requests import body_of
from .run import Run


async def create(desk: Desk, background: Background, scope: Scope, receive: Receive, send: Send) -> None:
    """Raises GatewayError for what is refused before anything was sent."""
    asked = head.read(scope)
    operator = await desk.operators.authenticate(asked.approach)
    operator.grant.demand(plan.WRITE)
    body = await body_of(desk, asked, receive)
    request = plan.read(body)
    making = plan.make(desk, operator, asked, request, len(body))
    # Words alone bring nothing that is slow to fetch.
    made = await making if isinstance(request.input, str) else await _while_there(receive, making)
    if made is None:
        return
    run = Run(desk, made)
    if made.background:
        await background.answer(run, receive, send)
        return
    call = run.open()
    async with watching(receive, call):
        await (_stream if made.stream else _whole)(desk, run, call, send)


async def _stream(desk: Desk, run: Run, call: Call, send: Send) -> None:
    async with EventStream(send, desk.ping_seconds) as stream:

        async def write(frames: list[Frame]) -> None:
            if is_last(frames):
                await stream.end(sse(frames) + DONE)
            else:
                await stream.write(sse(frames))
            call.bytes_out = stream.sent

        try:
            await run.drive(call, write, insists=lambda: stream.started)
        except GatewayError as error:
            await refuse(send, error)


async def _whole(desk: Desk, run: Run, call: Call, send: Send) -> None:
    async def write(frames: list[Frame]) -> None:
        """Nothing is shown before the end."""
        if run.resource.status in _ENDED:
            call.bytes_out = await reply(send, 200, json.encode(run.resource), [])

    try:
        await run.drive(call, write, insists=lambda: False)
        if run.error is not None:
            await refuse(send, run.error)
    except GatewayError as error:
        await refuse(send, error)


def is_last(frames: list[Frame]) -> bool:
    return frames[-1][0] in TERMINAL


_ENDED = frozenset({"completed", "incomplete"})
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})


@asynccontextmanager
async def watching(receive: Receive, call: Call) -> AsyncIterator[None]:
    """A client that hangs up is seen only by whoever is listening: it ends the call."""
    watcher = asyncio.create_task(_watch(receive, call))
    try:
        yield
    finally:
        watcher.cancel()


async def _watch(receive: Receive, call: Call) -> None:
    await _gone(receive)
    call.interrupt(Cut.CLIENT_GONE)


async def _while_there(receive: Receive, work: object) -> plan.Plan | None:
    """The plan; None if the client hung up while files were being fetched for it."""
    making = asyncio.ensure_future(work)  # type: ignore[call-overload]  # a coroutine
    done, _ = await asyncio.wait([making], timeout=0)
    if done:
        result: plan.Plan = making.result()
        return result
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait([making, leaving], return_when=asyncio.FIRST_COMPLETED)
        if making.done():
            found: plan.Plan = making.result()
            return found
        return None
    finally:
        leaving.cancel()
        making.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
