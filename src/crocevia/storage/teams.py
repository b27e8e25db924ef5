"""Rows of people and what is theirs: users, workspaces, agents, teams, API keys."""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec
from sqlalchemy import Table, bindparam, delete, insert, select, update

from crocevia.core.catalogue import AgentSpec, TeamSpec, ToolRule
from crocevia.core.ids import new_id

from .database import Transaction
from .schema import agents, api_keys, team_members, teams, users, workspaces


def _insert(table: Table, *names: str) -> Any:
    return insert(table).values({name: bindparam(name) for name in names})


_ADD_USER: Final = _insert(users, "id", "name", "role", "created_at", "updated_at")
_ADD_WORKSPACE: Final = _insert(workspaces, "id", "user_id", "name", "created_at", "updated_at")
_ADD_API_KEY: Final = _insert(api_keys, "id", "user_id", "name", "scopes", "digest", "expires_at", "created_at")

_SPELLED: Final = ("system_prompt", "model", "mode", "tools_enabled", "permissions", "updated_at")
_AGENTS: Final = select(agents).where(agents.c.user_id == bindparam("owner")).order_by(agents.c.name)
_ADD_AGENT: Final = _insert(agents, "id", "user_id", "name", "created_at", *_SPELLED)
_SET_AGENT: Final = (
    update(agents)
    .where(agents.c.user_id == bindparam("owner"), agents.c.name == bindparam("called"))
    .values({name: bindparam(name) for name in _SPELLED})
)
_AGENT_IDS: Final = select(agents.c.name, agents.c.id).where(agents.c.user_id == bindparam("owner"))

_TEAMS: Final = (
    select(teams.c.id, teams.c.name, agents.c.name.label("orchestrator"))
    .join(agents, agents.c.id == teams.c.orchestrator_id)
    .where(teams.c.user_id == bindparam("owner"))
    .order_by(teams.c.name)
)
_MEMBERS: Final = (
    select(team_members.c.team_id, agents.c.name)
    .join(agents, agents.c.id == team_members.c.agent_id)
    .join(teams, teams.c.id == team_members.c.team_id)
    .where(teams.c.user_id == bindparam("owner"))
    .order_by(team_members.c.team_id, team_members.c.position)
)
_TEAM_ID: Final = select(teams.c.id).where(teams.c.user_id == bindparam("owner"), teams.c.name == bindparam("called"))
_ADD_TEAM: Final = _insert(teams, "id", "user_id", "name", "orchestrator_id", "created_at", "updated_at")
_SET_TEAM: Final = (
    update(teams)
    .where(teams.c.id == bindparam("which"))
    .values(orchestrator_id=bindparam("leader"), updated_at=bindparam("now"))
)
_DROP_MEMBERS: Final = delete(team_members).where(team_members.c.team_id == bindparam("which"))
_ADD_MEMBER: Final = _insert(team_members, "team_id", "position", "agent_id", "name")


def add_user(tx: Transaction, name: str, role: str, now: float) -> str:
    """The new user's id. role: `operator` or `member`."""
    user_id = new_id("usr")
    tx.run(_ADD_USER, id=user_id, name=name, role=role, created_at=now, updated_at=now)
    return user_id


def add_workspace(tx: Transaction, user_id: str, name: str, now: float) -> str:
    """The new workspace's id."""
    workspace_id = new_id("wsp")
    tx.run(_ADD_WORKSPACE, id=workspace_id, user_id=user_id, name=name, created_at=now, updated_at=now)
    return workspace_id


def add_api_key(
    tx: Transaction,
    key_id: str,
    user_id: str,
    name: str,
    digest: str,
    scopes: list[str],
    expires_at: float | None,
    now: float,
) -> None:
    """Keep what is needed to recognise and revoke a key that was just minted."""
    tx.run(
        _ADD_API_KEY,
        id=key_id,
        user_id=user_id,
        name=name,
        scopes=_json(scopes),
        digest=digest,
        expires_at=expires_at,
        created_at=now,
    )


def load_agents(tx: Transaction, user_id: str) -> dict[str, AgentSpec]:
    """A user's agents by name."""
    return {
        row.name: AgentSpec(
            name=row.name,
            mode=row.mode,
            model=row.model,
            system_prompt=row.system_prompt,
            tools=tuple(_names(row.tools_enabled)),
            permissions=_rules(row.permissions),
        )
        for row in tx.all(_AGENTS, owner=user_id)
    }


def save_agent(tx: Transaction, user_id: str, spec: AgentSpec, now: float) -> None:
    """Create the user's agent of this name, or change it."""
    spelled = {
        "system_prompt": spec.system_prompt,
        "model": spec.model,
        "mode": spec.mode,
        "tools_enabled": _json(spec.tools),
        "permissions": _json(spec.permissions),
        "updated_at": now,
    }
    if not tx.run(_SET_AGENT, owner=user_id, called=spec.name, **spelled):
        tx.run(_ADD_AGENT, id=new_id("agt"), user_id=user_id, name=spec.name, created_at=now, **spelled)


def load_teams(tx: Transaction, user_id: str) -> dict[str, TeamSpec]:
    """A user's teams by name."""
    members: dict[str, list[str]] = {}
    for row in tx.all(_MEMBERS, owner=user_id):
        members.setdefault(row.team_id, []).append(row.name)
    return {
        row.name: TeamSpec(name=row.name, orchestrator=row.orchestrator, members=tuple(members.get(row.id, ())))
        for row in tx.all(_TEAMS, owner=user_id)
    }


def find_team(tx: Transaction, user_id: str, name: str) -> str | None:
    """The id of the user's team of this name."""
    found: str | None = tx.scalar(_TEAM_ID, owner=user_id, called=name)
    return found


def save_team(tx: Transaction, user_id: str, spec: TeamSpec, now: float) -> str:
    """Create the user's team of this name, or change it; its id. Raises KeyError if an agent is not there."""
    ids: dict[str, str] = {row.name: row.id for row in tx.all(_AGENT_IDS, owner=user_id)}
    leader = ids[spec.orchestrator]
    team_id = find_team(tx, user_id, spec.name)
    if team_id is None:
        team_id = new_id("team")
        tx.run(
            _ADD_TEAM,
            id=team_id,
            user_id=user_id,
            name=spec.name,
            orchestrator_id=leader,
            created_at=now,
            updated_at=now,
        )
    else:
        tx.run(_SET_TEAM, which=team_id, leader=leader, now=now)
        tx.run(_DROP_MEMBERS, which=team_id)
    for position, member in enumerate(spec.members):
        tx.run(_ADD_MEMBER, team_id=team_id, position=position, agent_id=ids[member], name=member)
    return team_id


def _names(tools: str) -> list[str]:
    """Names of tools; the API keeps objects with more in them."""
    return [tool["name"] if isinstance(tool, dict) else tool for tool in msgspec.json.decode(tools)]


def _rules(permissions: str) -> dict[str, ToolRule]:
    """Rules by tool, without what an owner keeps there for a program of their own."""
    return {tool: rule for tool, rule in msgspec.json.decode(permissions).items() if rule in get_args(ToolRule)}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
