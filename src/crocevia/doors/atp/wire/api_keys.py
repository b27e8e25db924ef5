"""API keys on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from crocevia.doors.atp.wire.common import Name, Request, moment, moment_or_none
from crocevia.runtime.control import api_keys as control

Scope = Literal["completions:write"]


class ApiKeyCreate(Request, frozen=True, kw_only=True):
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
