"""`POST /v1/responses`: one answer, as JSON or as an event stream."""

from __future__ import annotations

from crocevia.asgi.answers import reply
from crocevia.asgi.hangup import watching, while_there
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core import json
from crocevia.core.errors import GatewayError
from crocevia.doors.responses import head, plan
from crocevia.doors.responses.background import Background
from crocevia.doors.responses.errors import refuse
from crocevia.doors.responses.frames import DONE, TERMINAL, Frame, sse
from crocevia.doors.responses.plan import Desk
from crocevia.doors.responses.requests import answering, body_of
from crocevia.doors.responses.run import Run
from crocevia.runtime.gateway import Cut
from crocevia.runtime.turns.run_service import Work


async def create(desk: Desk, background: Background, scope: Scope, receive: Receive, send: Send) -> None:
    """Raises GatewayError for what is refused before anything was sent."""
    asked = head.read(scope)
    operator = await desk.operators.authenticate(asked.approach)
    operator.grant.demand(plan.WRITE)
    body = await body_of(desk, asked, receive)
    request = plan.read(body)
    making = plan.make(desk, operator, asked, request, len(body))
    # Words alone bring nothing that is slow to fetch.
    made = await making if isinstance(request.input, str) else await while_there(receive, making)
    if made is None:
        return
    run = Run(desk, made)
    if made.background:
        await background.answer(run, receive, send)
        return
    call = await while_there(receive, run.open()) if made.order is not None else await run.open()
    if call is None:
        return
    with watching(receive, lambda: call.interrupt(Cut.CLIENT_GONE)):
        await (_stream if made.stream else _whole)(desk, run, call, send)


async def _stream(desk: Desk, run: Run, call: Work, send: Send) -> None:
    async with answering(send, desk.ping_seconds) as stream:

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


async def _whole(desk: Desk, run: Run, call: Work, send: Send) -> None:
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
