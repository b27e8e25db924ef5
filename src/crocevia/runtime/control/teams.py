"""Teams: an orchestrator and its members, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from crocevia.core.declared import Problem, Refused
from crocevia.core.errors import GatewayError, Reason, say
from crocevia.runtime.control.context import MOST, Control, check_room, missing
from crocevia.storage import agents, chats
from crocevia.storage import teams as rows
from crocevia.storage.database import Transaction
from crocevia.storage.teams import Member, Team

__all__ = ["Member", "Team", "create", "delete", "get", "listed", "update"]

Membership = tuple[str, str | None]
"""An agent's id and its role in the team."""


async def create(
    control: Control,
    user_id: str,
    name: str,
    description: str | None,
    orchestrator_id: str,
    members: Sequence[Membership],
) -> Team:
    """Raises GatewayError(INVALID_REQUEST): a name that is taken, agents that are not there or not fit."""
    now = control.clock()

    def work(tx: Transaction) -> Team:
        check_room(rows.count(tx, user_id))
        _check_name(tx, user_id, name)
        checked = _checked(tx, user_id, orchestrator_id, members)
        return rows.add(tx, user_id, name, description, orchestrator_id, checked, now)

    return await control.database.write(work)


async def listed(control: Control, user_id: str) -> list[Team]:
    """Oldest first."""
    return await control.database.read(lambda tx: rows.listed(tx, user_id, MOST))


async def get(control: Control, user_id: str, team_id: str) -> Team:
    """Raises GatewayError(NOT_FOUND)."""
    return await control.database.read(lambda tx: _owned(tx, user_id, team_id))


async def update(
    control: Control, user_id: str, team_id: str, changes: dict[str, Any], members: Sequence[Membership] | None
) -> Team:
    """changes: of name, description and orchestrator_id. members: replace the old ones whole; None keeps them.

    Raises GatewayError: NOT_FOUND, INVALID_REQUEST.
    """
    now = control.clock()

    def work(tx: Transaction) -> Team:
        before = _owned(tx, user_id, team_id)
        if changes.get("name", before.name) != before.name:
            _check_name(tx, user_id, changes["name"])
        leader = changes.get("orchestrator_id", before.orchestrator_id)
        kept = [(member.agent_id, member.role) for member in before.members]
        checked = _checked(tx, user_id, leader, kept if members is None else members)
        changed = msgspec.structs.replace(before, **changes, members=checked, updated_at=now)
        rows.save(tx, changed)
        return changed

    return await control.database.write(work)


async def delete(control: Control, user_id: str, team_id: str) -> None:
    """Takes its memberships with it; its agents stay.

    Raises GatewayError: NOT_FOUND, INVALID_REQUEST while chats have this team.
    """

    def work(tx: Transaction) -> None:
        _owned(tx, user_id, team_id)
        count = chats.count_of_team(tx, team_id)
        if count:
            raise GatewayError(Reason.TEAM_HAS_CHATS, param="team_id", count=count)
        rows.drop(tx, team_id)

    await control.database.write(work)


def _owned(tx: Transaction, user_id: str, team_id: str) -> Team:
    found = rows.find(tx, user_id, team_id)
    if found is None:
        raise missing("team")
    return found


def _check_name(tx: Transaction, user_id: str, name: str) -> None:
    if rows.find_named(tx, user_id, name) is not None:
        raise GatewayError(Reason.NAME_TAKEN, param="name")


def _checked(tx: Transaction, user_id: str, leader: str, members: Sequence[Membership]) -> tuple[Member, ...]:
    """The members with their names. Raises Refused with everything that is wrong."""
    problems = []
    found = agents.find(tx, user_id, leader)
    if found is None or found.mode != "primary":
        problems.append(Problem("orchestrator_id", say(Reason.ORCHESTRATOR_WRONG)))
    checked: dict[str, Member] = {}
    for index, (agent_id, role) in enumerate(members):
        place = f"members[{index}].agent_definition_id"
        agent = agents.find(tx, user_id, agent_id)
        if agent is None:
            problems.append(Problem(place, say(Reason.MEMBER_WRONG)))
        elif agent_id == leader:
            problems.append(Problem(place, say(Reason.ORCHESTRATOR_IS_MEMBER)))
        elif agent_id in checked:
            problems.append(Problem(place, say(Reason.MEMBER_TWICE)))
        else:
            checked[agent_id] = Member(agent_id=agent_id, name=agent.name, role=role)
    if problems:
        raise Refused(problems)
    return tuple(checked.values())
