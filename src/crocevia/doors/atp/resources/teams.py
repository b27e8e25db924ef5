"""Teams."""

from __future__ import annotations

from msgspec import UNSET

from crocevia.doors.atp.operation import NO_CONTENT, Answer, Operation, Request, data
from crocevia.doors.atp.wire import teams as wire
from crocevia.doors.atp.wire.common import changes, one_form
from crocevia.runtime.control import teams


async def create(request: Request) -> Answer:
    body: wire.TeamCreateRequest = request.body
    made = await teams.create(
        request.control,
        request.user_id,
        one_form(body.name),
        body.description,
        body.orchestrator_id,
        wire.memberships(body.members),
    )
    return data(wire.team(made), 201)


async def listed(request: Request) -> Answer:
    return data([wire.team(found) for found in await teams.listed(request.control, request.user_id)])


async def get(request: Request) -> Answer:
    return data(wire.team(await teams.get(request.control, request.user_id, request.params["team_id"])))


async def update(request: Request) -> Answer:
    body: wire.TeamUpdateRequest = request.body
    new = changes(body)
    new.pop("members", None)
    if "name" in new:
        new["name"] = one_form(new["name"])
    members = None if body.members is UNSET else wire.memberships(body.members)
    changed = await teams.update(request.control, request.user_id, request.params["team_id"], new, members)
    return data(wire.team(changed))


async def delete(request: Request) -> Answer:
    await teams.delete(request.control, request.user_id, request.params["team_id"])
    return NO_CONTENT


OPERATIONS = (
    Operation(
        "createTeam",
        "POST",
        "/teams",
        create,
        "Create a team: an orchestrator of mode primary, and members in order.",
        body=wire.TeamCreateRequest,
        result=wire.Team,
        status=201,
    ),
    Operation(
        "listTeams",
        "GET",
        "/teams",
        listed,
        "The caller's teams, oldest first; at most 1,000 exist.",
        result=list[wire.Team],
    ),
    Operation("getTeam", "GET", "/teams/{team_id}", get, "One team.", result=wire.Team),
    Operation(
        "updateTeam",
        "PUT",
        "/teams/{team_id}",
        update,
        "Change a team; `members` replaces the members whole.",
        body=wire.TeamUpdateRequest,
        result=wire.Team,
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
