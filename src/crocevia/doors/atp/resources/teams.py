"""Teams."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from crocevia.asgi.http import NO_CONTENT, Operation, Response, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire.common import Body, Description, Name, changes, moment, one_form, refuse_given, require_one
from crocevia.runtime.control import teams as control

MAX_MEMBERS = 100
Id = Annotated[str, Meta(max_length=64)]


class TeamMemberCreateRequest(Body, frozen=True, kw_only=True):
    """The place in the list is the position; giving one is refused."""

    agent_definition_id: Id
    role: Annotated[str, Meta(max_length=255)] | None = None
    position: Any = UNSET
    user_id: Any = UNSET

    def __post_init__(self) -> None:
        refuse_given(self, "position", "user_id")


Members = Annotated[list[TeamMemberCreateRequest], Meta(max_length=MAX_MEMBERS)]


class TeamCreateRequest(Body, frozen=True, kw_only=True):
    name: Name
    orchestrator_id: Id
    description: Description = None
    members: Members = msgspec.field(default_factory=list)
    user_id: Any = UNSET

    def __post_init__(self) -> None:
        refuse_given(self, "user_id")


class TeamUpdateRequest(Body, frozen=True, kw_only=True):
    name: Name | UnsetType = UNSET
    orchestrator_id: Id | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    members: Members | UnsetType = UNSET
    user_id: Any = UNSET

    def __post_init__(self) -> None:
        refuse_given(self, "user_id")
        require_one(self)


class TeamMember(msgspec.Struct, frozen=True, kw_only=True):
    agent_definition_id: str
    name: str
    position: int
    role: str | None


class Team(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    user_id: str
    name: str
    description: str | None
    orchestrator_id: str
    members: list[TeamMember]
    created_at: datetime
    updated_at: datetime


def memberships(members: list[TeamMemberCreateRequest]) -> list[tuple[str, str | None]]:
    """As the control plane takes them."""
    return [(member.agent_definition_id, member.role) for member in members]


def team(value: control.Team) -> Team:
    """As the wire shows it."""
    return Team(
        id=value.id,
        user_id=value.user_id,
        name=value.name,
        description=value.description,
        orchestrator_id=value.orchestrator_id,
        members=[
            TeamMember(agent_definition_id=member.agent_id, name=member.name, position=position, role=member.role)
            for position, member in enumerate(value.members)
        ],
        created_at=moment(value.created_at),
        updated_at=moment(value.updated_at),
    )


async def create(request: Request) -> Response:
    body: TeamCreateRequest = request.body
    made = await control.create(
        request.caller.control,
        request.caller.user_id,
        one_form(body.name),
        body.description,
        body.orchestrator_id,
        memberships(body.members),
    )
    return data(team(made), 201)


async def listed(request: Request) -> Response:
    return data([team(found) for found in await control.listed(request.caller.control, request.caller.user_id)])


async def get(request: Request) -> Response:
    return data(team(await control.get(request.caller.control, request.caller.user_id, request.params["team_id"])))


async def update(request: Request) -> Response:
    body: TeamUpdateRequest = request.body
    new = changes(body)
    new.pop("members", None)
    if "name" in new:
        new["name"] = one_form(new["name"])
    members = None if body.members is UNSET else memberships(body.members)
    changed = await control.update(
        request.caller.control, request.caller.user_id, request.params["team_id"], new, members
    )
    return data(team(changed))


async def delete(request: Request) -> Response:
    await control.delete(request.caller.control, request.caller.user_id, request.params["team_id"])
    return NO_CONTENT


OPERATIONS = (
    Operation(
        "createTeam",
        "POST",
        "/teams",
        create,
        "Create a team: an orchestrator of mode primary, and members in order.",
        body=TeamCreateRequest,
        result=Team,
        wrapped=True,
        status=201,
    ),
    Operation(
        "listTeams",
        "GET",
        "/teams",
        listed,
        "The caller's teams, oldest first; at most 1,000 exist.",
        result=list[Team],
        wrapped=True,
    ),
    Operation("getTeam", "GET", "/teams/{team_id}", get, "One team.", result=Team, wrapped=True),
    Operation(
        "updateTeam",
        "PUT",
        "/teams/{team_id}",
        update,
        "Change a team; `members` replaces the members whole.",
        body=TeamUpdateRequest,
        result=Team,
        wrapped=True,
    ),
    Operation(
        "deleteTeam",
        "DELETE",
        "/teams/{team_id}",
        delete,
        "Remove a team and its memberships; its agents stay. Refused while chats have this team.",
        status=204,
    ),
)
