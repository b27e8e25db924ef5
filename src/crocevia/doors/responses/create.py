"""`POST /v1/responses`: one answer, as JSON or as an event stream."""

from __future__ import annotations

from functools import partial
from typing import Final

from crocevia.asgi.http import ClientGone, EventResponse, Response
from crocevia.asgi.stream import EventStream
from crocevia.core import json
from crocevia.doors.responses import plan, wire
from crocevia.doors.responses.caller import Request, session_key
from crocevia.doors.responses.frames import CLOSING, DONE, TERMINAL, Frame, sse
from crocevia.doors.responses.run import Background, Run
from crocevia.doors.responses.services import Services
from crocevia.runtime.gateway import Cut
from crocevia.runtime.turns.run_service import Work

_ENDED: Final = frozenset({"completed", "incomplete"})


async def create(services: Services, background: Background, request: Request) -> Response | EventResponse:
    """One answer."""
    body: wire.Request = request.take()
    # Words alone bring nothing that is slow to fetch, and without a session there is no line to wait in.
    quick = isinstance(body.input, str) and not (body.user or body.previous_response_id or session_key(request.caller))
    making = plan.make(services, request.caller, body, request.size)
    made = await making if quick else await request.until_disconnect(making)
    run = Run(services, made)
    if made.background:
        return await background.answer(run, request)
    call = await request.until_disconnect(run.open()) if made.order is not None else await run.open()
    if made.stream:
        return EventResponse(partial(_stream, request, run, call), headers=CLOSING)
    return await _whole(request, run, call)


async def _stream(request: Request, run: Run, call: Work, stream: EventStream) -> None:
    # Whoever asks for the stream of an answer that is kept is told the very same frames.
    told: list[Frame] | None = [] if run.plan.resource.store else None
    run.told = told

    async def write(frames: list[Frame]) -> None:
        if told is not None:
            told.extend(frames)
        if frames[-1][0] in TERMINAL:
            await stream.end(sse(frames) + DONE)
        else:
            await stream.write(sse(frames))
        call.bytes_out = stream.sent

    with request.on_disconnect(lambda: call.interrupt(Cut.CLIENT_GONE)):
        await run.drive(call, write, must_stream=lambda: stream.started)


async def _whole(request: Request, run: Run, call: Work) -> Response:
    body = b""

    async def write(frames: list[Frame]) -> None:
        """Nothing is shown before the end."""
        nonlocal body
        if run.resource.status in _ENDED:
            body = json.encode(run.resource)
            call.bytes_out = len(body)

    with request.on_disconnect(lambda: call.interrupt(Cut.CLIENT_GONE)):
        await run.drive(call, write, must_stream=lambda: False)
    if run.error is not None:
        raise run.error
    if not body:
        raise ClientGone
    return Response(200, body)
