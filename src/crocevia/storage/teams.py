"""Rows of teams, an orchestrator and members in order: as owners see them, and as `crocevia apply` declares them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    bindparam,
    delete,
    exists,
    func,
    select,
    text,
    update,
)

from crocevia.core.catalogue import TeamSpec
from crocevia.core.ids import new_id
from crocevia.storage.agents import agents
from crocevia.storage.chats import chats
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting, setting
from crocevia.storage.statements import Row

# implicit 1: of one agent, made for runs that name no team; it answers by id and is in no list.
teams = Table(
    "teams",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("orchestrator_id", Text, ForeignKey("agents.id"), nullable=False, index=True),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("implicit", Integer, nullable=False, server_default=text("0")),
    Index(None, "user_id", "name", unique=True),
)

team_members = Table(
    "team_members",
    metadata,
    Column("team_id", Text, ForeignKey("teams.id", ondelete="CASCADE"), primary_key=True, nullable=False),
    Column("position", Integer, primary_key=True, nullable=False),
    Column("agent_id", Text, ForeignKey("agents.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("role", Text),
)


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """An agent in a team."""

    agent_id: str
    name: str
    """The agent's own."""
    role: str | None


class Team(msgspec.Struct, frozen=True, kw_only=True):
    """members: in the order in which they were given."""

    id: str
    user_id: str
    name: str
    description: str | None
    orchestrator_id: str
    members: tuple[Member, ...]
    created_at: float
    updated_at: float


_CHANGING: Final = ("name", "description", "orchestrator_id", "updated_at")
_OWNED: Final = teams.c.user_id == bindparam("owner")
_LISTED: Final = teams.c.implicit == 0
_LIST: Final = select(teams).where(_OWNED, _LISTED).order_by(teams.c.id).limit(bindparam("most"))
_BORN: Final = (
    select(teams.c.id, teams.c.created_at).where(_OWNED, _LISTED).order_by(teams.c.id).limit(bindparam("most"))
)
_FIND: Final = select(teams).where(teams.c.id == bindparam("which"), _OWNED)
_COUNT: Final = select(func.count()).select_from(teams).where(_OWNED, _LISTED)
_LED_ALL: Final = (
    select(teams.c.name).where(teams.c.orchestrator_id == bindparam("agent")).order_by(teams.c.name).limit(5)
)
_LED: Final = _LED_ALL.where(_LISTED)
_DROP: Final = delete(teams).where(teams.c.id == bindparam("which"))
_DROP_NAMED: Final = delete(teams).where(_OWNED, teams.c.name == bindparam("called"))
_MEMBERS: Final = (
    select(team_members.c.team_id, team_members.c.agent_id, agents.c.name, team_members.c.role)
    .join(agents, agents.c.id == team_members.c.agent_id)
    .order_by(team_members.c.team_id, team_members.c.position)
)
_MEMBERS_OF: Final = _MEMBERS.where(team_members.c.team_id == bindparam("which"))
_MEMBERS_OF_ALL: Final = _MEMBERS.join(teams, teams.c.id == team_members.c.team_id).where(_OWNED)
_TEAMS_WITH: Final = select(team_members.c.team_id).where(team_members.c.agent_id == bindparam("agent"))
_ADD: Final = inserting(teams, "id", "user_id", "name", "description", "orchestrator_id", "created_at", "updated_at")
_SET: Final = update(teams).where(teams.c.id == bindparam("which")).values(setting(*_CHANGING))
_IMPLICIT: Final = select(teams.c.id).where(
    teams.c.orchestrator_id == bindparam("agent"), teams.c.implicit == 1, _OWNED
)
_DROP_IMPLICIT: Final = delete(teams).where(
    teams.c.orchestrator_id == bindparam("agent"),
    teams.c.implicit == 1,
    ~exists().where(chats.c.team_id == teams.c.id),
)
_ADD_IMPLICIT: Final = inserting(
    teams, "id", "user_id", "name", "orchestrator_id", "created_at", "updated_at", "implicit"
)
_DROP_MEMBERS: Final = delete(team_members).where(team_members.c.team_id == bindparam("which"))
_ADD_MEMBER: Final = inserting(team_members, "team_id", "position", "agent_id", "name", "role")

_NAMED: Final = select(teams.c.id).where(_OWNED, teams.c.name == bindparam("called"))
_BY_NAME: Final = (
    select(teams.c.id, teams.c.name, teams.c.description, agents.c.name.label("orchestrator"))
    .join(agents, agents.c.id == teams.c.orchestrator_id)
    .where(_OWNED, _LISTED)
    .order_by(teams.c.name)
)
_AGENT_IDS: Final = select(agents.c.name, agents.c.id).where(agents.c.user_id == bindparam("owner"))


def count(tx: Transaction, user_id: str) -> int:
    """How many the user has."""
    found: int = tx.scalar(_COUNT, owner=user_id)
    return found


def add(
    tx: Transaction,
    user_id: str,
    name: str,
    description: str | None,
    orchestrator_id: str,
    members: tuple[Member, ...],
    now: float,
) -> Team:
    """A new team. The name must be free, and every agent there."""
    made = Team(
        id=new_id("team"),
        user_id=user_id,
        name=name,
        description=description,
        orchestrator_id=orchestrator_id,
        members=members,
        created_at=now,
        updated_at=now,
    )
    fields = msgspec.structs.asdict(made)
    del fields["members"]
    tx.run(_ADD, **fields)
    _add_members(tx, made.id, members)
    return made


def find(tx: Transaction, user_id: str, team_id: str) -> Team | None:
    """The user's team of this id."""
    row = tx.first(_FIND, owner=user_id, which=team_id)
    return None if row is None else _value(row, tx.all(_MEMBERS_OF, which=team_id))


def find_named(tx: Transaction, user_id: str, name: str) -> str | None:
    """The id of the user's team of this name."""
    found: str | None = tx.scalar(_NAMED, owner=user_id, called=name)
    return found


def listed(tx: Transaction, user_id: str, most: int) -> list[Team]:
    """The user's teams, oldest first."""
    members: dict[str, list[Row]] = {}
    for row in tx.all(_MEMBERS_OF_ALL, owner=user_id):
        members.setdefault(row.team_id, []).append(row)
    return [_value(row, members.get(row.id, ())) for row in tx.all(_LIST, owner=user_id, most=most)]


def born(tx: Transaction, user_id: str, most: int) -> list[tuple[str, float]]:
    """Ids of the user's teams with the moment of their making, oldest first."""
    return [(row.id, row.created_at) for row in tx.all(_BORN, owner=user_id, most=most)]


def save(tx: Transaction, team: Team) -> None:
    """Write what can change; the members are replaced whole."""
    tx.run(_SET, which=team.id, **{name: getattr(team, name) for name in _CHANGING})
    tx.run(_DROP_MEMBERS, which=team.id)
    _add_members(tx, team.id, team.members)


def drop(tx: Transaction, team_id: str) -> None:
    """Remove the team and its memberships. No chat may have it any more."""
    tx.run(_DROP, which=team_id)


def drop_named(tx: Transaction, user_id: str, name: str) -> None:
    """Remove the user's team of this name and its memberships. No chat may have it any more."""
    tx.run(_DROP_NAMED, owner=user_id, called=name)


def led_by(tx: Transaction, agent_id: str, *, implicit: bool = False) -> list[str]:
    """Names of (at most five) teams that the agent leads. implicit: the one that it makes up alone, too."""
    return [row.name for row in tx.all(_LED_ALL if implicit else _LED, agent=agent_id)]


def find_implicit(tx: Transaction, user_id: str, agent_id: str) -> str | None:
    """The id of the team that the agent makes up alone."""
    found: str | None = tx.scalar(_IMPLICIT, owner=user_id, agent=agent_id)
    return found


def drop_implicit(tx: Transaction, agent_id: str) -> None:
    """Remove the team that the agent makes up alone, unless a chat has it."""
    tx.run(_DROP_IMPLICIT, agent=agent_id)


def implicit(tx: Transaction, user_id: str, agent_id: str, agent: str, now: float) -> str:
    """The id of the team that the agent makes up alone, made if it is not there."""
    found = find_implicit(tx, user_id, agent_id)
    if found is None:
        found = new_id("team")
        tx.run(
            _ADD_IMPLICIT,
            id=found,
            user_id=user_id,
            name=f"{agent} ({agent_id[-6:]})",
            orchestrator_id=agent_id,
            created_at=now,
            updated_at=now,
            implicit=1,
        )
    return found


def leave_all(tx: Transaction, user_id: str, agent_id: str) -> None:
    """Take the agent out of every team that it is a member of; the others close up."""
    for row in tx.all(_TEAMS_WITH, agent=agent_id):
        team = find(tx, user_id, row.team_id)
        if team is not None:
            left = tuple(member for member in team.members if member.agent_id != agent_id)
            save(tx, msgspec.structs.replace(team, members=left))


def declared(tx: Transaction, user_id: str) -> dict[str, TeamSpec]:
    """The user's teams by name."""
    members: dict[str, list[Row]] = {}
    for row in tx.all(_MEMBERS_OF_ALL, owner=user_id):
        members.setdefault(row.team_id, []).append(row)
    return {
        row.name: TeamSpec(
            name=row.name,
            orchestrator=row.orchestrator,
            description=row.description,
            members=tuple(member.name for member in members.get(row.id, ())),
            roles={member.name: member.role for member in members.get(row.id, ()) if member.role is not None},
        )
        for row in tx.all(_BY_NAME, owner=user_id)
    }


def declare(tx: Transaction, user_id: str, spec: TeamSpec, now: float) -> str:
    """Create the user's team of this name, or change it; its id. Raises KeyError if an agent is not there."""
    ids: dict[str, str] = {row.name: row.id for row in tx.all(_AGENT_IDS, owner=user_id)}
    leader = ids[spec.orchestrator]
    members = tuple(Member(agent_id=ids[name], name=name, role=spec.roles.get(name)) for name in spec.members)
    team_id = find_named(tx, user_id, spec.name)
    before = None if team_id is None else find(tx, user_id, team_id)
    if before is None:
        return add(tx, user_id, spec.name, spec.description, leader, members, now).id
    fields = {"description": spec.description, "orchestrator_id": leader, "members": members, "updated_at": now}
    save(tx, msgspec.structs.replace(before, **fields))
    return before.id


def _add_members(tx: Transaction, team_id: str, members: tuple[Member, ...]) -> None:
    tx.run_many(
        _ADD_MEMBER,
        [
            {"team_id": team_id, "position": position, **msgspec.structs.asdict(member)}
            for position, member in enumerate(members)
        ],
    )


def _value(row: Row, members: Iterable[Row]) -> Team:
    fields = row._asdict()
    del fields["implicit"]
    return Team(
        **fields,
        members=tuple(Member(agent_id=member.agent_id, name=member.name, role=member.role) for member in members),
    )
