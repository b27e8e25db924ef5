"""API keys."""

from __future__ import annotations

from crocevia.asgi.http import NO_CONTENT, Operation, Response, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire import api_keys as wire
from crocevia.doors.atp.wire.common import one_form


async def create(request: Request) -> Response:
    body: wire.ApiKeyCreate = request.body
    made, token = await request.caller.control.keys.create(
        request.caller.user_id, one_form(body.name), body.expires_at, tuple(dict.fromkeys(body.scopes))
    )
    return data(wire.created(made, token), 201)


async def listed(request: Request) -> Response:
    return data([wire.api_key(found) for found in await request.caller.control.keys.listed(request.caller.user_id)])


async def revoke(request: Request) -> Response:
    await request.caller.control.keys.revoke(request.caller.user_id, request.params["key_id"])
    return NO_CONTENT


OPERATIONS = (
    Operation(
        "createApiKey",
        "POST",
        "/api-keys",
        create,
        "Create a key; its token is in this answer and nowhere else. Without `expires_at` it holds for 30 days.",
        body=wire.ApiKeyCreate,
        result=wire.ApiKeyCreated,
        wrapped=True,
        status=201,
        per_minute=60,
    ),
    Operation(
        "listApiKeys",
        "GET",
        "/api-keys",
        listed,
        "The caller's newest 1,000 keys, revoked ones too, newest first.",
        result=list[wire.ApiKey],
        wrapped=True,
    ),
    Operation(
        "deleteApiKey",
        "DELETE",
        "/api-keys/{key_id}",
        revoke,
        "Revoke a key. Requests with it are refused from now on, and its open streams end. The key stays in the list.",
        status=204,
    ),
)
