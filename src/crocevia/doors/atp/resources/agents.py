"""Agents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from crocevia.asgi.http import NO_CONTENT, Operation, Response, data
from crocevia.core.declared import FieldError
from crocevia.core.errors import Reason
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire.common import Body, Description, Name, changes, moment, one_form, refuse_given, require_one
from crocevia.runtime.control import agents as control

Prompt = Annotated[str, Meta(min_length=1)]
Model = Annotated[str, Meta(min_length=1, max_length=255)] | None
Tools = Annotated[list[dict[str, Any]], Meta(max_length=500)]
_TOOL_NAME = 255


class AgentCreateRequest(Body, frozen=True, kw_only=True):
    """user_id is always the caller: giving one is refused."""

    name: Name
    system_prompt: Prompt
    mode: control.Mode
    description: Description | UnsetType = UNSET
    model: Model | UnsetType = UNSET
    tools_enabled: Tools | UnsetType = UNSET
    external_tools_enabled: Tools | UnsetType = UNSET
    permissions: dict[str, Any] | UnsetType = UNSET
    can_write_knowledge: bool | UnsetType = UNSET
    can_write_skills: bool | UnsetType = UNSET
    config: dict[str, Any] | UnsetType = UNSET
    user_id: Any = UNSET

    def __post_init__(self) -> None:
        refuse_given(self, "user_id")
        _check(self)


class AgentUpdateRequest(Body, frozen=True, kw_only=True):
    name: Name | UnsetType = UNSET
    system_prompt: Prompt | UnsetType = UNSET
    mode: control.Mode | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    model: Model | UnsetType = UNSET
    tools_enabled: Tools | UnsetType = UNSET
    external_tools_enabled: Tools | UnsetType = UNSET
    permissions: dict[str, Any] | UnsetType = UNSET
    can_write_knowledge: bool | UnsetType = UNSET
    can_write_skills: bool | UnsetType = UNSET
    config: dict[str, Any] | UnsetType = UNSET
    user_id: Any = UNSET

    def __post_init__(self) -> None:
        refuse_given(self, "user_id")
        require_one(self)
        _check(self)


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    user_id: str
    name: str
    description: str | None
    system_prompt: str
    model: str | None
    mode: control.Mode
    tools_enabled: list[dict[str, Any]]
    external_tools_enabled: list[dict[str, Any]]
    permissions: dict[str, Any]
    can_write_knowledge: bool
    can_write_skills: bool
    config: dict[str, Any]
    created_at: datetime
    updated_at: datetime


def agent(value: control.StoredAgent) -> Agent:
    """As the wire shows it."""
    fields = msgspec.structs.asdict(value)
    del fields["unreadable"]
    return Agent(**fields | {name: moment(fields[name]) for name in ("created_at", "updated_at")})


def _check(body: AgentCreateRequest | AgentUpdateRequest) -> None:
    for field in ("tools_enabled", "external_tools_enabled"):
        tools = getattr(body, field)
        if tools is UNSET:
            continue
        names = [tool.get("name") for tool in tools]
        if not all(isinstance(name, str) and 0 < len(name) <= _TOOL_NAME for name in names):
            raise FieldError(field, Reason.TOOLS_UNNAMED)
        if len(set(names)) < len(names):
            raise FieldError(field, Reason.GIVEN_TWICE_INSIDE)


async def create(request: Request) -> Response:
    return data(agent(await control.create(request.caller.control, request.caller.user_id, _fields(request.body))), 201)


async def listed(request: Request) -> Response:
    return data([agent(found) for found in await control.listed(request.caller.control, request.caller.user_id)])


async def get(request: Request) -> Response:
    return data(agent(await control.get(request.caller.control, request.caller.user_id, request.params["agent_id"])))


async def update(request: Request) -> Response:
    new = _fields(request.body)
    return data(
        agent(await control.update(request.caller.control, request.caller.user_id, request.params["agent_id"], new))
    )


async def delete(request: Request) -> Response:
    await control.delete(request.caller.control, request.caller.user_id, request.params["agent_id"])
    return NO_CONTENT


def _fields(body: AgentCreateRequest | AgentUpdateRequest) -> dict[str, Any]:
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
        body=AgentCreateRequest,
        result=Agent,
        wrapped=True,
        status=201,
    ),
    Operation(
        "listAgents",
        "GET",
        "/agents",
        listed,
        "The caller's agents, oldest first; at most 1,000 exist.",
        result=list[Agent],
        wrapped=True,
    ),
    Operation("getAgent", "GET", "/agents/{agent_id}", get, "One agent.", result=Agent, wrapped=True),
    Operation(
        "updateAgent",
        "PUT",
        "/agents/{agent_id}",
        update,
        "Change an agent; lists and objects are replaced whole.",
        body=AgentUpdateRequest,
        result=Agent,
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
