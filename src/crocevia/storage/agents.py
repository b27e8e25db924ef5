"""Rows of agents: as their owner sees them, and as `crocevia apply` declares them."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import msgspec
from sqlalchemy import bindparam, delete, func, select, update

from crocevia.core.catalogue import AgentSpec, ToolRule
from crocevia.core.ids import new_id
from crocevia.storage.database import Transaction
from crocevia.storage.rows import inserting, packed, unpacked
from crocevia.storage.schema import agents
from crocevia.storage.statements import Row

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
_DROP_NAMED: Final = delete(agents).where(_OWNED, agents.c.name == bindparam("called"))
_ADD: Final = inserting(agents, *Agent.__struct_fields__)
_SET: Final = (
    update(agents).where(agents.c.id == bindparam("which")).values({name: bindparam(name) for name in _CHANGING})
)

_SPELLED: Final = ("system_prompt", "model", "mode", "tools_enabled", "permissions", "updated_at")
_BY_NAME: Final = select(agents).where(_OWNED).order_by(agents.c.name)
_DECLARE: Final = inserting(agents, "id", "user_id", "name", "created_at", *_SPELLED)
_DECLARE_AGAIN: Final = (
    update(agents)
    .where(_OWNED, agents.c.name == bindparam("called"))
    .values({name: bindparam(name) for name in _SPELLED})
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


def declared(tx: Transaction, user_id: str) -> dict[str, AgentSpec]:
    """The user's agents by name, as far as they can be declared."""
    return {
        row.name: AgentSpec(
            name=row.name,
            mode=row.mode,
            model=row.model,
            system_prompt=row.system_prompt,
            tools=tuple(_names(row.tools_enabled)),
            permissions=_rules(row.permissions),
        )
        for row in tx.all(_BY_NAME, owner=user_id)
    }


def declare(tx: Transaction, user_id: str, spec: AgentSpec, now: float) -> None:
    """Create the user's agent of this name, or change it."""
    spelled = {
        "system_prompt": spec.system_prompt,
        "model": spec.model,
        "mode": spec.mode,
        "tools_enabled": packed(spec.tools),
        "permissions": packed(spec.permissions),
        "updated_at": now,
    }
    if not tx.run(_DECLARE_AGAIN, owner=user_id, called=spec.name, **spelled):
        tx.run(_DECLARE, id=new_id("agt"), user_id=user_id, name=spec.name, created_at=now, **spelled)


def drop_named(tx: Transaction, user_id: str, name: str) -> None:
    """Remove the user's agent of this name. Nothing may refer to it any more."""
    tx.run(_DROP_NAMED, owner=user_id, called=name)


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


def _names(tools: str) -> list[str]:
    """Names of tools; the API keeps objects with more in them."""
    return [tool["name"] if isinstance(tool, dict) else tool for tool in unpacked(tools)]


def _rules(permissions: str) -> dict[str, ToolRule]:
    """Rules by tool, without what an owner keeps there for a program of their own."""
    return {tool: rule for tool, rule in unpacked(permissions).items() if rule in get_args(ToolRule)}
