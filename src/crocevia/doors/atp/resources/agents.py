"""Agents."""

from __future__ import annotations

from typing import Any

from crocevia.asgi.http import NO_CONTENT, Operation, Response, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire import agents as wire
from crocevia.doors.atp.wire.common import changes, one_form
from crocevia.runtime.control import agents


async def create(request: Request) -> Response:
    return data(
        wire.agent(await agents.create(request.caller.control, request.caller.user_id, _fields(request.body))), 201
    )


async def listed(request: Request) -> Response:
    return data([wire.agent(found) for found in await agents.listed(request.caller.control, request.caller.user_id)])


async def get(request: Request) -> Response:
    return data(
        wire.agent(await agents.get(request.caller.control, request.caller.user_id, request.params["agent_id"]))
    )


async def update(request: Request) -> Response:
    new = _fields(request.body)
    return data(
        wire.agent(await agents.update(request.caller.control, request.caller.user_id, request.params["agent_id"], new))
    )


async def delete(request: Request) -> Response:
    await agents.delete(request.caller.control, request.caller.user_id, request.params["agent_id"])
    return NO_CONTENT


def _fields(body: wire.AgentCreateRequest | wire.AgentUpdateRequest) -> dict[str, Any]:
    fields = changes(body)
    if "name" in fields:
        fields["name"] = one_form(fields["name"])
    return fields


OPERATIONS = (
    Operation(
        "createAgent",
        "POST",
        "/agents",
        create,
        "Create an agent.",
        body=wire.AgentCreateRequest,
        result=wire.Agent,
        wrapped=True,
        status=201,
    ),
    Operation(
        "listAgents",
        "GET",
        "/agents",
        listed,
        "The caller's agents, oldest first; at most 1,000 exist.",
        result=list[wire.Agent],
        wrapped=True,
    ),
    Operation("getAgent", "GET", "/agents/{agent_id}", get, "One agent.", result=wire.Agent, wrapped=True),
    Operation(
        "updateAgent",
        "PUT",
        "/agents/{agent_id}",
        update,
        "Change an agent; lists and objects are replaced whole.",
        body=wire.AgentUpdateRequest,
        result=wire.Agent,
        wrapped=True,
    ),
    Operation(
        "deleteAgent",
        "DELETE",
        "/agents/{agent_id}",
        delete,
        "Remove an agent and its memberships; the members after it move up. Refused while it leads a team.",
        status=204,
    ),
)
