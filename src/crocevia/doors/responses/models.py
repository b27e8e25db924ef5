"""`GET /v1/models` and `/v1/models/{id}`: who answers here."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

from crocevia.asgi.answers import reply
from crocevia.asgi.types import Scope, Send
from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.responses import head
from crocevia.doors.responses.plan import Desk
from crocevia.doors.responses.requests import check_method

_READ = "operator.read"


async def listed(desk: Desk, scope: Scope, send: Send) -> None:
    """Every name. Raises GatewayError."""
    check_method(scope, "GET")
    names = await _names(desk, scope)
    shown = [_model(desk, name) for name in names]
    await reply(send, 200, json.encode({"object": "list", "data": shown}), [])


async def one(desk: Desk, rest: str, scope: Scope, send: Send) -> None:
    """One name. Raises GatewayError."""
    check_method(scope, "GET")
    names = await _names(desk, scope)
    name = _decoded(scope, rest)
    if not name:
        raise GatewayError(Reason.MODEL_ID_MISSING, param="model")
    if name not in names:
        raise GatewayError(Reason.MODEL_UNKNOWN, name=name[:80])
    await reply(send, 200, json.encode(_model(desk, name)), [])


def _decoded(scope: Scope, rest: str) -> str:
    """The name as it was meant: servers hand over a decoded path, and the raw one where they have it."""
    raw = scope.get("raw_path")
    if not raw:
        return rest
    try:
        return unquote_to_bytes(raw.partition(b"/v1/models/")[2]).decode()
    except UnicodeDecodeError:
        raise GatewayError(Reason.MODEL_ID_ENCODING, param="model") from None


async def _names(desk: Desk, scope: Scope) -> list[str]:
    operator = await desk.operators.authenticate(head.read(scope).approach)
    operator.grant.demand(_READ)
    return await desk.targets.names(operator)


def _model(desk: Desk, name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": desk.targets.prefix, "permission": []}
