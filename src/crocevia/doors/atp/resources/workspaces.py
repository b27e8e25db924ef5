"""Workspaces."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from crocevia.asgi.http import Operation, Response, data
from crocevia.core.declared import FieldError
from crocevia.core.errors import Reason
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire.common import Body, Name, changes, moment, one_form, require_one
from crocevia.runtime.control import workspaces as control

# The contract lets metadata be a list and then refuses every list; an empty one is how PHP spells an empty object.
Metadata = dict[str, Any] | list[Any]


class WorkspaceCreateRequest(Body, frozen=True, kw_only=True):
    name: Name
    metadata: Metadata | UnsetType = UNSET

    def __post_init__(self) -> None:
        _check(self.metadata)


class WorkspaceUpdateRequest(Body, frozen=True, kw_only=True):
    name: Name | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET

    def __post_init__(self) -> None:
        _check(self.metadata)
        require_one(self)


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    user_id: str
    name: str
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime


def workspace(value: control.Workspace) -> Workspace:
    """As the wire shows it."""
    return Workspace(
        id=value.id,
        user_id=value.user_id,
        name=value.name,
        metadata=value.metadata,
        created_at=moment(value.created_at),
        updated_at=moment(value.updated_at),
    )


def _check(metadata: Metadata | UnsetType) -> None:
    if isinstance(metadata, list) and metadata:
        raise FieldError("metadata", Reason.FIELD_NOT_OBJECT)


async def create(request: Request) -> Response:
    body: WorkspaceCreateRequest = request.body
    metadata = body.metadata if isinstance(body.metadata, dict) else {}
    made = await control.create(request.caller.control, request.caller.user_id, one_form(body.name), metadata)
    return data(workspace(made), 201)


async def listed(request: Request) -> Response:
    return data([workspace(found) for found in await control.listed(request.caller.control, request.caller.user_id)])


async def get(request: Request) -> Response:
    found = await control.get(request.caller.control, request.caller.user_id, request.params["workspace_id"])
    return data(workspace(found))


async def update(request: Request) -> Response:
    new: dict[str, Any] = changes(request.body)
    if "name" in new:
        new["name"] = one_form(new["name"])
    if "metadata" in new:
        new["metadata"] = new["metadata"] or {}
    changed = await control.update(request.caller.control, request.caller.user_id, request.params["workspace_id"], new)
    return data(workspace(changed))


OPERATIONS = (
    Operation(
        "createWorkspace",
        "POST",
        "/workspaces",
        create,
        "Create a workspace.",
        body=WorkspaceCreateRequest,
        result=Workspace,
        wrapped=True,
        status=201,
    ),
    Operation(
        "listWorkspaces",
        "GET",
        "/workspaces",
        listed,
        "The caller's workspaces, oldest first; at most 1,000 exist.",
        result=list[Workspace],
        wrapped=True,
    ),
    Operation(
        "getWorkspace",
        "GET",
        "/workspaces/{workspace_id}",
        get,
        "One workspace.",
        result=Workspace,
        wrapped=True,
    ),
    Operation(
        "updateWorkspace",
        "PUT",
        "/workspaces/{workspace_id}",
        update,
        "Change name or metadata; metadata is replaced whole.",
        body=WorkspaceUpdateRequest,
        result=Workspace,
        wrapped=True,
    ),
)
