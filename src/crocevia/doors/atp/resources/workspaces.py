"""Workspaces."""

from __future__ import annotations

from typing import Any

from crocevia.asgi.http import Operation, Response, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire import workspaces as wire
from crocevia.doors.atp.wire.common import changes, one_form
from crocevia.runtime.control import workspaces


async def create(request: Request) -> Response:
    body: wire.WorkspaceCreateRequest = request.body
    metadata = body.metadata if isinstance(body.metadata, dict) else {}
    made = await workspaces.create(request.caller.control, request.caller.user_id, one_form(body.name), metadata)
    return data(wire.workspace(made), 201)


async def listed(request: Request) -> Response:
    return data(
        [wire.workspace(found) for found in await workspaces.listed(request.caller.control, request.caller.user_id)]
    )


async def get(request: Request) -> Response:
    found = await workspaces.get(request.caller.control, request.caller.user_id, request.params["workspace_id"])
    return data(wire.workspace(found))


async def update(request: Request) -> Response:
    new: dict[str, Any] = changes(request.body)
    if "name" in new:
        new["name"] = one_form(new["name"])
    if "metadata" in new:
        new["metadata"] = new["metadata"] or {}
    changed = await workspaces.update(
        request.caller.control, request.caller.user_id, request.params["workspace_id"], new
    )
    return data(wire.workspace(changed))


OPERATIONS = (
    Operation(
        "createWorkspace",
        "POST",
        "/workspaces",
        create,
        "Create a workspace.",
        body=wire.WorkspaceCreateRequest,
        result=wire.Workspace,
        wrapped=True,
        status=201,
    ),
    Operation(
        "listWorkspaces",
        "GET",
        "/workspaces",
        listed,
        "The caller's workspaces, oldest first; at most 1,000 exist.",
        result=list[wire.Workspace],
        wrapped=True,
    ),
    Operation(
        "getWorkspace",
        "GET",
        "/workspaces/{workspace_id}",
        get,
        "One workspace.",
        result=wire.Workspace,
        wrapped=True,
    ),
    Operation(
        "updateWorkspace",
        "PUT",
        "/workspaces/{workspace_id}",
        update,
        "Change name or metadata; metadata is replaced whole.",
        body=wire.WorkspaceUpdateRequest,
        result=wire.Workspace,
        wrapped=True,
    ),
)
