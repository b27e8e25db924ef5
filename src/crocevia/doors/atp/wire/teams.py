"""Teams on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from crocevia.doors.atp.wire.common import Description, Name, Request, moment, refuse_given, require_one
from crocevia.runtime.control import teams as control

MAX_MEMBERS = 100
Id = Annotated[str, Meta(max_length=64)]


class TeamMemberCreateRequest(Request, frozen=True, kw_only=True):
    """The place in the list is the position; giving one is refused."""

    agent_definition_id: Id
    role: Annotated[str, Meta(max_length=255)] | None = None
    position: Any = UNSET
    user_id: Any = UNSET

    def __post_init__(self) -> None:
        refuse_given(self, "position", "user_id")


Members = Annotated[list[TeamMemberCreateRequest], Meta(max_length=MAX_MEMBERS)]


class TeamCreateRequest(Request, frozen=True, kw_only=True):
    name: Name
    orchestrator_id: Id
    description: Description = None
    members: Members = msgspec.field(default_factory=list)
    user_id: Any = UNSET

    def __post_init__(self) -> None:
        refuse_given(self, "user_id")


class TeamUpdateRequest(Request, frozen=True, kw_only=True):
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
