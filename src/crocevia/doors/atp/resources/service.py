"""What anybody may ask: whether the service is up, and the keys that it signs with."""

from __future__ import annotations

from datetime import datetime

import msgspec

from crocevia.asgi.http import Operation, Response, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire.common import moment
from crocevia.runtime.signing_keys import Jwk


class JwksDocument(msgspec.Struct, frozen=True, kw_only=True):
    keys: list[Jwk]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    timestamp: datetime
    app: str
    env: str


async def up(request: Request) -> Response:
    control = request.caller.control
    status = "ok" if control.database.failing_since is None else "unavailable"
    return data(
        Health(status=status, timestamp=moment(control.clock()), app="crocevia", env="production"),
        200 if status == "ok" else 503,
    )


async def jwks(request: Request) -> Response:
    return Response(200, JwksDocument(keys=request.caller.control.signer.published()))


OPERATIONS = (
    Operation("healthCheck", "GET", "/up", up, "Whether the service works.", result=Health, wrapped=True, public=True),
    Operation(
        "getJwks",
        "GET",
        "/.well-known/jwks.json",
        jwks,
        "The public keys of API keys and of requests to client tools, active and retired.",
        result=JwksDocument,
        public=True,
    ),
)
