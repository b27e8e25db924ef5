"""Client tools on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from crocevia.core.declared import FieldError
from crocevia.core.errors import Reason
from crocevia.doors.atp.wire.common import Closed, Description, moment, require_one
from crocevia.runtime.control import tools as control

ToolName = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[a-z][a-z0-9_]{0,254}$(?!\n)")]
Seconds = Annotated[int, Meta(ge=1, le=600)]


class UserToolCreateRequest(Closed, frozen=True, kw_only=True):
    name: ToolName
    parameters: dict[str, Any]
    kind: Literal["client"] = "client"
    description: Description = None
    timeout_seconds: Seconds = 120

    def __post_init__(self) -> None:
        _check(self.parameters)


class UserToolUpdateRequest(Closed, frozen=True, kw_only=True):
    description: Description | UnsetType = UNSET
    parameters: dict[str, Any] | UnsetType = UNSET
    timeout_seconds: Seconds | UnsetType = UNSET

    def __post_init__(self) -> None:
        require_one(self)
        if self.parameters is not UNSET:
            _check(self.parameters)


class UserTool(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    kind: Literal["client"] = "client"
    description: str | None
    parameters: dict[str, Any]
    timeout_seconds: int
    created_at: datetime
    updated_at: datetime


def tool(value: control.UserTool) -> UserTool:
    """As the wire shows it."""
    return UserTool(
        id=value.id,
        name=value.name,
        description=value.description,
        parameters=value.parameters,
        timeout_seconds=value.timeout_seconds,
        created_at=moment(value.created_at),
        updated_at=moment(value.updated_at),
    )


def _check(parameters: dict[str, Any]) -> None:
    if parameters.get("type") != "object":
        raise FieldError("parameters", Reason.SCHEMA_NOT_OBJECT)
