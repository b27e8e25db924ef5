"""What belongs to no door: the health page, and addresses that nobody has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from crocevia.asgi.http import Door, Operation, Request, Response
from crocevia.core import json
from crocevia.core.errors import Code, GatewayError
from crocevia.core.texts import render

_STATUSES: Final = {Code.NOT_FOUND: 404, Code.METHOD_NOT_ALLOWED: 405, Code.UNAVAILABLE: 503}


def site_door(ready: Callable[[], bool]) -> Door:
    """`/up`: 200 while calls are admitted, else 503."""

    async def up(request: Request[None]) -> Response:
        if ready():
            return Response(200, {"status": "ok"})
        return Response(503, {"status": "unavailable"}, ((b"retry-after", b"1"),))

    return Door(
        name="site",
        table=(Operation("up", "GET", "/up", up, "Whether calls are admitted.", public=True, head=True),),
        authenticate=_anybody,
        refuse=_refuse,
        decode=json.decode,
    )


async def _anybody(request: Request[None]) -> None:
    return None


def _refuse(error: GatewayError) -> Response:
    status = _STATUSES.get(error.code, 400)
    return Response(status, {"error": {"code": error.code.value, "message": render(error.message, "en")}})
