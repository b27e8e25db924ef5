"""Client tools, addressed by name."""

from __future__ import annotations

from crocevia.asgi.http import NO_CONTENT, Operation, Response, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire import tools as wire
from crocevia.doors.atp.wire.common import changes
from crocevia.runtime.control import tools


async def create(request: Request) -> Response:
    body: wire.UserToolCreateRequest = request.body
    made = await tools.create(
        request.caller.control,
        request.caller.user_id,
        body.name,
        body.parameters,
        body.description,
        body.timeout_seconds,
    )
    return data(wire.tool(made), 201)


async def listed(request: Request) -> Response:
    return data([wire.tool(found) for found in await tools.listed(request.caller.control, request.caller.user_id)])


async def get(request: Request) -> Response:
    return data(wire.tool(await tools.get(request.caller.control, request.caller.user_id, request.params["name"])))


async def update(request: Request) -> Response:
    new = changes(request.body)
    return data(
        wire.tool(await tools.update(request.caller.control, request.caller.user_id, request.params["name"], new))
    )


async def delete(request: Request) -> Response:
    await tools.delete(request.caller.control, request.caller.user_id, request.params["name"])
    return NO_CONTENT


OPERATIONS = (
    Operation(
        "createUserTool",
        "POST",
        "/tools",
        create,
        "Register a client tool, for all workspaces of the caller.",
        body=wire.UserToolCreateRequest,
        result=wire.UserTool,
        wrapped=True,
        status=201,
    ),
    Operation(
        "listUserTools",
        "GET",
        "/tools",
        listed,
        "The caller's client tools, oldest first; at most 1,000 exist.",
        result=list[wire.UserTool],
        wrapped=True,
    ),
    Operation("getUserTool", "GET", "/tools/{name}", get, "One client tool.", result=wire.UserTool, wrapped=True),
    Operation(
        "updateUserTool",
        "PUT",
        "/tools/{name}",
        update,
        "Change description, parameters or timeout_seconds.",
        body=wire.UserToolUpdateRequest,
        result=wire.UserTool,
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
