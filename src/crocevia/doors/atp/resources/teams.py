"""Teams."""

from __future__ import annotations

from msgspec import UNSET

from crocevia.asgi.http import NO_CONTENT, Operation, Response, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire import teams as wire
from crocevia.doors.atp.wire.common import changes, one_form
from crocevia.runtime.control import teams


async def create(request: Request) -> Response:
    body: wire.TeamCreateRequest = request.body
    made = await teams.create(
        request.caller.control,
        request.caller.user_id,
        one_form(body.name),
        body.description,
        body.orchestrator_id,
        wire.memberships(body.members),
    )
    return data(wire.team(made), 201)


async def listed(request: Request) -> Response:
    return data([wire.team(found) for found in await teams.listed(request.caller.control, request.caller.user_id)])


async def get(request: Request) -> Response:
    return data(wire.team(await teams.get(request.caller.control, request.caller.user_id, request.params["team_id"])))


async def update(request: Request) -> Response:
    body: wire.TeamUpdateRequest = request.body
    new = changes(body)
    new.pop("members", None)
    if "name" in new:
        new["name"] = one_form(new["name"])
    members = None if body.members is UNSET else wire.memberships(body.members)
    changed = await teams.update(
        request.caller.control, request.caller.user_id, request.params["team_id"], new, members
    )
    return data(wire.team(changed))


async def delete(request: Request) -> Response:
    await teams.delete(request.caller.control, request.caller.user_id, request.params["team_id"])
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
        wrapped=True,
        status=201,
    ),
    Operation(
        "listTeams",
        "GET",
        "/teams",
        listed,
        "The caller's teams, oldest first; at most 1,000 exist.",
        result=list[wire.Team],
        wrapped=True,
    ),
    Operation("getTeam", "GET", "/teams/{team_id}", get, "One team.", result=wire.Team, wrapped=True),
    Operation(
        "updateTeam",
        "PUT",
        "/teams/{team_id}",
        update,
        "Change a team; `members` replaces the members whole.",
        body=wire.TeamUpdateRequest,
        result=wire.Team,
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
