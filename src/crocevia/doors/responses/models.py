"""`GET /v1/models` and `/v1/models/{id}`: who answers here."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

from crocevia.asgi.http import Response
from crocevia.asgi.types import Scope
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.responses.caller import Request
from crocevia.doors.responses.services import Services


async def listed(services: Services, request: Request) -> Response:
    """Every name."""
    names = await services.targets.names(request.caller.operator)
    return Response(200, {"object": "list", "data": [_model(services, name) for name in names]})


async def one(services: Services, request: Request) -> Response:
    """One name."""
    names = await services.targets.names(request.caller.operator)
    name = _decoded(request.scope, request.params["model"])
    if not name:
        raise GatewayError(Reason.MODEL_ID_MISSING, param="model")
    if name not in names:
        raise GatewayError(Reason.MODEL_UNKNOWN, name=name[:80])
    return Response(200, _model(services, name))


def _decoded(scope: Scope, rest: str) -> str:
    """The name as it was meant: servers hand over a decoded path, and the raw one where they have it."""
    raw = scope.get("raw_path")
    if not raw:
        return rest
    try:
        return unquote_to_bytes(raw.partition(b"/v1/models/")[2]).decode()
    except UnicodeDecodeError:
        raise GatewayError(Reason.MODEL_ID_ENCODING, param="model") from None


def _model(services: Services, name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": services.targets.prefix, "permission": []}
