"""`POST /agent`: one call to one model, as a plain ASGI application."""

from __future__ import annotations

from typing import Final

from crocevia.asgi.answers import reply
from crocevia.asgi.body import ClientGone, read_body
from crocevia.asgi.hangup import watching
from crocevia.asgi.stream import EventStream
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.events import StopReason
from crocevia.doors.pepper import decode, encode, wire
from crocevia.doors.pepper.errors import expected, refuse
from crocevia.doors.pepper.head import read_head
from crocevia.doors.pepper.standing import Standing
from crocevia.runtime.gateway import Call, Cut, Gateway

PING_SECONDS: Final = 15.0


class AgentEndpoint:
    """The agent call. ping_seconds: of silence, after which a comment keeps the connection alive. max_body: bytes."""

    def __init__(self, gateway: Gateway, *, ping_seconds: float = PING_SECONDS, max_body: int = wire.MAX_BODY) -> None:
        self._gateway = gateway
        self._max_body = max_body
        self._ping_seconds = ping_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refusals come in the order of the specification: method, key, size, JSON, project, mode, content, limits."""
        standing = Standing(self._gateway)
        try:
            call = await self._open(scope, receive, standing)
        except ClientGone:
            return
        except Exception as error:
            known = expected(error)
            await refuse(send, known, close=known.code is Code.TOO_LARGE, more=standing.headers())
            return
        with watching(receive, lambda: call.interrupt(Cut.CLIENT_GONE)):
            answer = self._stream if call.request.options.stream else _whole
            await answer(call, send, standing)

    async def _open(self, scope: Scope, receive: Receive, standing: Standing) -> Call:
        head = read_head(scope, "POST")
        body = await read_body(receive, self._max_body, head.length, asks=head.asks)
        request, size = decode.read(body), len(body)
        del body  # as large as a file that is read meanwhile
        project = standing.project = self._gateway.authenticate(head.project or request.project or "", head.key)
        if project.mode != "agent":
            raise GatewayError(Reason.AGENT_NOT_ENABLED, project=project.name)
        found = decode.draft(request, project, size)
        route = self._gateway.route(project, found)
        if found.attachments:
            self._gateway.check_room(project)
            route = await self._gateway.attach(route, found.attachments, decode.wants(project))
        return self._gateway.open_call(project, found, route)

    async def _stream(self, call: Call, send: Send, standing: Standing) -> None:
        async with EventStream(send, self._ping_seconds, standing.headers) as stream:
            try:
                async with call:
                    async for batch in call:
                        if data := encode.events(batch):
                            await stream.write(data)
                        call.bytes_out = stream.sent
                    _check_refusal(call)
                    await stream.end(encode.done(call.fold.answer(), call.model))
                    call.bytes_out = stream.sent
            except Exception as error:
                if stream.started:
                    await stream.end(encode.failed(expected(error)))
                else:
                    await refuse(send, expected(error), more=standing.headers())


async def _whole(call: Call, send: Send, standing: Standing) -> None:
    try:
        async with call:
            answer = await call.answer()
            _check_refusal(call)
            call.bytes_out = await reply(send, 200, encode.whole(answer, call.model), standing.headers())
    except Exception as error:
        await refuse(send, expected(error), more=standing.headers())


def _check_refusal(call: Call) -> None:
    if call.fold.stop is StopReason.REFUSAL:
        raise GatewayError(Reason.REFUSED)
