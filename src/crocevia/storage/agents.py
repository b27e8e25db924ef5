"""Rows of agents as their owner sees them. What `crocevia apply` declares of them is in teams.py."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from sqlalchemy import bindparam, delete, func, select, update

from crocevia.core.ids import new_id

from .database import Transaction
from .rows import inserting, packed, unpacked
from .schema import agents
from .statements import Row

Mode = Literal["primary", "subagent"]


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """A definition. Tools are objects with a `name` and whatever else the owner keeps with it."""

    id: str
    user_id: str
    name: str
    description: str | None
    system_prompt: str
    model: str | None
    mode: Mode
    tools_enabled: list[dict[str, Any]]
    external_tools_enabled: list[dict[str, Any]]
    permissions: dict[str, Any]
    can_write_knowledge: bool
    can_write_skills: bool
    config: dict[str, Any]
    created_at: float
    updated_at: float


_JSON: Final = ("tools_enabled", "external_tools_enabled", "permissions", "config")
_CHANGING: Final = tuple(name for name in Agent.__struct_fields__ if name not in ("id", "user_id", "created_at"))
_OWNED: Final = agents.c.user_id == bindparam("owner")
_LIST: Final = select(agents).where(_OWNED).order_by(agents.c.id).limit(bindparam("most"))
_FIND: Final = select(agents).where(agents.c.id == bindparam("which"), _OWNED)
_NAMED: Final = select(agents.c.id).where(_OWNED, agents.c.name == bindparam("called"))
_COUNT: Final = select(func.count()).select_from(agents).where(_OWNED)
_DROP: Final = delete(agents).where(agents.c.id == bindparam("which"))
_ADD: Final = inserting(agents, *Agent.__struct_fields__)
_SET: Final = (
    update(agents).where(agents.c.id == bindparam("which")).values({name: bindparam(name) for name in _CHANGING})
)


def count(tx: Transaction, user_id: str) -> int:
    """How many the user has."""
    found: int = tx.scalar(_COUNT, owner=user_id)
    return found


def add(tx: Transaction, user_id: str, fields: dict[str, Any], now: float) -> Agent:
    """A new agent of these fields. The name must be free."""
    made = Agent(id=new_id("agt"), user_id=user_id, created_at=now, updated_at=now, **fields)
    tx.run(_ADD, **_columns(made))
    return made


def find(tx: Transaction, user_id: str, agent_id: str) -> Agent | None:
    """The user's agent of this id."""
    row = tx.first(_FIND, owner=user_id, which=agent_id)
    return None if row is None else _value(row)


def find_named(tx: Transaction, user_id: str, name: str) -> str | None:
    """The id of the user's agent of this name."""
    found: str | None = tx.scalar(_NAMED, owner=user_id, called=name)
    return found


def listed(tx: Transaction, user_id: str, most: int) -> list[Agent]:
    """The user's agents, oldest first."""
    return [_value(row) for row in tx.all(_LIST, owner=user_id, most=most)]


def save(tx: Transaction, agent: Agent) -> None:
    """Write every field that can change."""
    columns = _columns(agent)
    tx.run(_SET, which=agent.id, **{name: columns[name] for name in _CHANGING})


def drop(tx: Transaction, agent_id: str) -> None:
    """Remove the row. Nothing may refer to it any more."""
    tx.run(_DROP, which=agent_id)


def _columns(agent: Agent) -> dict[str, Any]:
    fields = msgspec.structs.asdict(agent)
    packed_fields = {name: packed(fields[name]) for name in _JSON}
    flags = {name: int(fields[name]) for name in ("can_write_knowledge", "can_write_skills")}
    return fields | packed_fields | flags


def _value(row: Row) -> Agent:
    fields = row._asdict()
    for name in _JSON:
        fields[name] = unpacked(fields[name])
    for name in ("tools_enabled", "external_tools_enabled"):  # `apply` keeps plain names
        fields[name] = [{"name": tool} if isinstance(tool, str) else tool for tool in fields[name]]
    for name in ("can_write_knowledge", "can_write_skills"):
        fields[name] = bool(fields[name])
    return Agent(**fields)
