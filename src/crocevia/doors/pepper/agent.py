"""`POST /agent`: one call to one model."""

from __future__ import annotations

from functools import partial

from crocevia.asgi.body import aside
from crocevia.asgi.http import ClientGone, EventResponse, Response
from crocevia.asgi.stream import EventStream
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import StopReason
from crocevia.doors.pepper import decode, encode, wire
from crocevia.doors.pepper.caller import Request, identify
from crocevia.runtime.gateway import Call, Cut, Gateway, ProjectSpec


async def agent(gateway: Gateway, request: Request) -> Response | EventResponse:
    """Refusals come in the order of the specification: method, key, size, JSON, project, mode, content, limits."""
    call = await _open(gateway, request)
    if call.request.options.stream:
        return EventResponse(partial(_stream, request, call), encode.failed)
    with request.on_disconnect(lambda: call.interrupt(Cut.CLIENT_GONE)):
        async with call:
            answer = await call.answer()
            _check_refusal(call)
            body = encode.whole(answer, call.model)
            call.bytes_out = len(body)
    if call.cut is Cut.CLIENT_GONE:
        raise ClientGone
    return Response(200, body)


async def _open(gateway: Gateway, request: Request) -> Call:
    body: wire.Request = request.take()
    assert request.caller is not None
    project = identify(gateway, request, request.caller.named or body.project)
    check_mode(project)
    found = await aside(request.size, decode.draft, body, project, request.size)
    route = gateway.route(project, found)
    if found.attachments:
        gateway.check_room(project)
        route = await gateway.attach(route, found.attachments, decode.wants(project))
    return gateway.open_call(project, found, route)


async def _stream(request: Request, call: Call, stream: EventStream) -> None:
    with request.on_disconnect(lambda: call.interrupt(Cut.CLIENT_GONE)):
        async with call:
            async for batch in call:
                if data := encode.events(batch):
                    await stream.write(data)
                call.bytes_out = stream.sent
            _check_refusal(call)
            await stream.end(encode.done(call.fold.answer(), call.model))
            call.bytes_out = stream.sent


def check_mode(project: ProjectSpec) -> None:
    """Raises GatewayError(AGENT_NOT_ENABLED)."""
    if project.mode != "agent":
        raise GatewayError(Reason.AGENT_NOT_ENABLED, project=project.name)


def _check_refusal(call: Call) -> None:
    if call.fold.stop is StopReason.REFUSAL:
        raise GatewayError(Reason.REFUSED)
