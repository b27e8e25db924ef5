"""API keys."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from crocevia.asgi.http import NO_CONTENT, Operation, Response, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire.common import Body, Name, moment, moment_or_none, one_form
from crocevia.runtime.control import api_keys as control

Scope = Literal["completions:write"]


class ApiKeyCreate(Body, frozen=True, kw_only=True):
    name: Name
    scopes: Annotated[list[Scope], Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["completions:write"])
    expires_at: Literal["30d", "90d", "1y", "never"] = "30d"


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    scopes: tuple[str, ...]
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime


class ApiKeyCreated(ApiKey, frozen=True, kw_only=True):
    """token: shown now and never again."""

    token: str

    def __repr__(self) -> str:
        return f"ApiKeyCreated(id={self.id!r})"


def api_key(value: control.ApiKey) -> ApiKey:
    """As the wire shows it."""
    return ApiKey(**_fields(value))


def created(value: control.ApiKey, token: str) -> ApiKeyCreated:
    """As the wire shows it once."""
    return ApiKeyCreated(**_fields(value), token=token)


def _fields(value: control.ApiKey) -> dict[str, Any]:
    return {
        "id": value.id,
        "name": value.name,
        "scopes": value.scopes,
        "expires_at": moment_or_none(value.expires_at),
        "revoked_at": moment_or_none(value.revoked_at),
        "created_at": moment(value.created_at),
    }


async def create(request: Request) -> Response:
    body: ApiKeyCreate = request.body
    made, token = await request.caller.control.keys.create(
        request.caller.user_id, one_form(body.name), body.expires_at, tuple(dict.fromkeys(body.scopes))
    )
    return data(created(made, token), 201)


async def listed(request: Request) -> Response:
    return data([api_key(found) for found in await request.caller.control.keys.listed(request.caller.user_id)])


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
        body=ApiKeyCreate,
        result=ApiKeyCreated,
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
        result=list[ApiKey],
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
