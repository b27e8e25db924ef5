"""Client tools, addressed by name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from crocevia.asgi.http import NO_CONTENT, Operation, Response, data
from crocevia.core.declared import FieldError
from crocevia.core.errors import Reason
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire.common import Closed, Description, changes, moment, require_one
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


async def create(request: Request) -> Response:
    body: UserToolCreateRequest = request.body
    made = await control.create(
        request.caller.control,
        request.caller.user_id,
        body.name,
        body.parameters,
        body.description,
        body.timeout_seconds,
    )
    return data(tool(made), 201)


async def listed(request: Request) -> Response:
    return data([tool(found) for found in await control.listed(request.caller.control, request.caller.user_id)])


async def get(request: Request) -> Response:
    return data(tool(await control.get(request.caller.control, request.caller.user_id, request.params["name"])))


async def update(request: Request) -> Response:
    new = changes(request.body)
    return data(tool(await control.update(request.caller.control, request.caller.user_id, request.params["name"], new)))


async def delete(request: Request) -> Response:
    await control.delete(request.caller.control, request.caller.user_id, request.params["name"])
    return NO_CONTENT


OPERATIONS = (
    Operation(
        "createUserTool",
        "POST",
        "/tools",
        create,
        "Register a client tool, for all workspaces of the caller.",
        body=UserToolCreateRequest,
        result=UserTool,
        wrapped=True,
        status=201,
    ),
    Operation(
        "listUserTools",
        "GET",
        "/tools",
        listed,
        "The caller's client tools, oldest first; at most 1,000 exist.",
        result=list[UserTool],
        wrapped=True,
    ),
    Operation("getUserTool", "GET", "/tools/{name}", get, "One client tool.", result=UserTool, wrapped=True),
    Operation(
        "updateUserTool",
        "PUT",
        "/tools/{name}",
        update,
        "Change description, parameters or timeout_seconds.",
        body=UserToolUpdateRequest,
        result=UserTool,
        wrapped=True,
    ),
    Operation(
        "deleteUserTool",
        "DELETE",
        "/tools/{name}",
        delete,
        "Remove a client tool. Agents that name it keep the name and do not get the tool any more.",
        status=204,
    ),
)
