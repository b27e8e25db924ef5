"""A whole door: a table, an authenticator, an error table, a decoder and an encoder; nothing else."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from crocevia.asgi.http import Door, EventResponse, Operation, Request, Response
from crocevia.asgi.stream import EventStream
from crocevia.core import json
from crocevia.core.errors import Code, GatewayError, Reason

TABLE: Final = {
    Code.UNAUTHENTICATED: (401, "who"),
    Code.INVALID_REQUEST: (400, "what"),
    Code.TOO_LARGE: (413, "large"),
    Code.METHOD_NOT_ALLOWED: (405, "how"),
    Code.NOT_FOUND: (404, "where"),
    Code.UNAVAILABLE: (503, "later"),
    Code.INTERNAL: (500, "ours"),
}


def refuse(error: GatewayError) -> Response:
    status, word = TABLE[error.code]
    return Response(status, {"error": word})


async def authenticate(request: Request[None]) -> None:
    if not request.operation.public and request.header(b"x-echo-key") != b"open":
        raise GatewayError(Reason.UNAUTHENTICATED)


class Said(msgspec.Struct):
    say: str
    stream: bool = False


async def echo(request: Request[None]) -> Response | EventResponse:
    said: Said = request.take()
    if said.say == "later":
        raise GatewayError(Reason.UNAVAILABLE, retry_after=7)

    async def letters(stream: EventStream) -> None:
        if said.say == "crash":
            raise RuntimeError("nobody is told this")
        for letter in said.say:
            await stream.write(b"data: %b\n\n" % letter.encode())
            await asyncio.sleep(0.05)  # as long as it takes to be pinged
        await stream.end(b"")

    if said.stream:
        return EventResponse(letters)
    if said.say == "crash":
        raise RuntimeError("nobody is told this")
    return Response(200, {"said": said.say})


async def up(request: Request[None]) -> Response:
    return Response(200, {"up": True})


async def whence(request: Request[Any]) -> Response:
    return Response(200, {"client": str(request.client), "origin": request.origin})


def echo_door() -> Door:
    rows = (
        Operation("echo", "POST", "/echo", echo, "Say it again.", body=Said, max_body=100),
        Operation("up", "GET", "/echo/up", up, "Whether it listens.", public=True, head=True),
        Operation("from", "GET", "/echo/from", whence, "Who asks, and where."),
    )
    return Door(
        name="echo", table=rows, authenticate=authenticate, refuse=refuse, decode=json.decode, challenge=b"Echo"
    )
