"""Rows of agents: as their owner sees them, and as `crocevia apply` declares them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec
from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    bindparam,
    delete,
    func,
    select,
    text,
    update,
)

from crocevia.core.agent_rules import ANY_TOOL, AgentConfig, read_config, read_permissions
from crocevia.core.catalogue import AgentSpec, DeclaredTool, ToolRule
from crocevia.core.ids import new_id
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting, packed, setting, unpacked
from crocevia.storage.statements import Row

# tools_enabled, external_tools_enabled: JSON arrays of names. permissions: JSON object, tool name to rule.
agents = Table(
    "agents",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("system_prompt", Text, nullable=False),
    Column("model", Text),
    Column("mode", Text, nullable=False),
    Column("tools_enabled", Text, nullable=False, server_default=text("'[]'")),
    Column("external_tools_enabled", Text, nullable=False, server_default=text("'[]'")),
    Column("permissions", Text, nullable=False, server_default=text("'{}'")),
    Column("can_write_knowledge", Integer, nullable=False, server_default=text("0")),
    Column("can_write_skills", Integer, nullable=False, server_default=text("0")),
    Column("config", Text, nullable=False, server_default=text("'{}'")),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    CheckConstraint("mode in ('primary', 'subagent')", name="mode"),
    Index(None, "user_id", "name", unique=True),
)


Mode = Literal["primary", "subagent"]


class StoredAgent(msgspec.Struct, frozen=True, kw_only=True):
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
    """As it was stored; `rules` is what it means."""
    can_write_knowledge: bool
    can_write_skills: bool
    config: dict[str, Any]
    """As it was stored; `bounds` is what it means."""
    created_at: float
    updated_at: float
    unreadable: tuple[str, ...] = ()
    """Fields whose columns hold nothing of their kind: such an agent does not work until they are set again."""

    @property
    def rules(self) -> dict[str, ToolRule]:
        """By tool; what is no rule means no."""
        return read_permissions(self.permissions)[0]

    @property
    def bounds(self) -> AgentConfig:
        """Of its turns; what is no bound is not set."""
        return read_config(self.config)[0]

    @property
    def misread(self) -> tuple[str, ...]:
        """What its owner may have meant otherwise: `permissions.write`, `config.max_rounds`, or a whole field."""
        rules, bounds = read_permissions(self.permissions)[1], read_config(self.config)[1]
        return (
            *self.unreadable,
            *(f"permissions.{tool}" for tool in rules),
            *(f"config.{name}" for name in bounds),
        )


_STORED: Final = tuple(name for name in StoredAgent.__struct_fields__ if name != "unreadable")
_JSON: Final = ("tools_enabled", "external_tools_enabled", "permissions", "config")
_KINDS: Final[dict[str, Any]] = {
    "tools_enabled": list[DeclaredTool],
    "external_tools_enabled": list[DeclaredTool],
    "permissions": dict[str, Any],
    "config": dict[str, Any],
}
_UNREADABLE: Final[dict[str, Callable[[], Any]]] = {
    "tools_enabled": list,
    "external_tools_enabled": list,
    "permissions": lambda: {ANY_TOOL: "deny"},
    "config": dict,
}
_CHANGING: Final = tuple(name for name in _STORED if name not in ("id", "user_id", "created_at"))
_OWNED: Final = agents.c.user_id == bindparam("owner")
_LIST: Final = select(agents).where(_OWNED).order_by(agents.c.id).limit(bindparam("most"))
_FIND: Final = select(agents).where(agents.c.id == bindparam("which"), _OWNED)
_NAMED: Final = select(agents.c.id).where(_OWNED, agents.c.name == bindparam("called"))
_COUNT: Final = select(func.count()).select_from(agents).where(_OWNED)
_DROP: Final = delete(agents).where(agents.c.id == bindparam("which"))
_DROP_NAMED: Final = delete(agents).where(_OWNED, agents.c.name == bindparam("called"))
_ADD: Final = inserting(agents, *_STORED)
_SET: Final = update(agents).where(agents.c.id == bindparam("which")).values(setting(*_CHANGING))

_ALL: Final = select(agents).order_by(agents.c.name, agents.c.id)
_BY_NAME: Final = select(agents).where(_OWNED).order_by(agents.c.name)


def count(tx: Transaction, user_id: str) -> int:
    """How many the user has."""
    found: int = tx.scalar(_COUNT, owner=user_id)
    return found


def add(tx: Transaction, user_id: str, fields: dict[str, Any], now: float) -> StoredAgent:
    """A new agent of these fields. The name must be free."""
    made = StoredAgent(id=new_id("agt"), user_id=user_id, created_at=now, updated_at=now, **fields)
    tx.run(_ADD, **_columns(made))
    return made


def find(tx: Transaction, user_id: str, agent_id: str) -> StoredAgent | None:
    """The user's agent of this id."""
    row = tx.first(_FIND, owner=user_id, which=agent_id)
    return None if row is None else _value(row)


def find_named(tx: Transaction, user_id: str, name: str) -> str | None:
    """The id of the user's agent of this name."""
    found: str | None = tx.scalar(_NAMED, owner=user_id, called=name)
    return found


def misread(tx: Transaction) -> list[StoredAgent]:
    """Agents of all users that say something which is not acted on as their owner may think."""
    return [agent for agent in map(_value, tx.all(_ALL)) if agent.misread]


def listed(tx: Transaction, user_id: str, most: int) -> list[StoredAgent]:
    """The user's agents, oldest first."""
    return [_value(row) for row in tx.all(_LIST, owner=user_id, most=most)]


def save(tx: Transaction, agent: StoredAgent) -> None:
    """Write every field that can change."""
    columns = _columns(agent)
    tx.run(_SET, which=agent.id, **{name: columns[name] for name in _CHANGING})


def drop(tx: Transaction, agent_id: str) -> None:
    """Remove the row. Nothing may refer to it any more."""
    tx.run(_DROP, which=agent_id)


def declared(tx: Transaction, user_id: str) -> dict[str, AgentSpec]:
    """The user's agents by name."""
    return {
        agent.name: AgentSpec(
            name=agent.name,
            mode=agent.mode,
            model=agent.model,
            description=agent.description,
            system_prompt=agent.system_prompt,
            tools=tuple(map(_declared_tool, agent.tools_enabled)),
            external_tools=tuple(map(_declared_tool, agent.external_tools_enabled)),
            permissions=agent.rules,
            can_write_knowledge=agent.can_write_knowledge,
            can_write_skills=agent.can_write_skills,
            config={name: value for name, value in agent.config.items() if f"config.{name}" not in agent.misread},
        )
        for agent in map(_value, tx.all(_BY_NAME, owner=user_id))
    }


def declare(tx: Transaction, user_id: str, spec: AgentSpec, now: float) -> None:
    """Create the user's agent of this name, or change it."""
    fields = {
        "name": spec.name,
        "description": spec.description,
        "system_prompt": spec.system_prompt,
        "model": spec.model,
        "mode": spec.mode,
        "tools_enabled": [_tool(tool) for tool in spec.tools],
        "external_tools_enabled": [_tool(tool) for tool in spec.external_tools],
        "permissions": spec.permissions,
        "can_write_knowledge": spec.can_write_knowledge,
        "can_write_skills": spec.can_write_skills,
        "config": spec.config,
    }
    agent_id = find_named(tx, user_id, spec.name)
    before = None if agent_id is None else find(tx, user_id, agent_id)
    if before is None:
        add(tx, user_id, fields, now)
    else:
        save(tx, msgspec.structs.replace(before, **fields, updated_at=now))


def drop_named(tx: Transaction, user_id: str, name: str) -> None:
    """Remove the user's agent of this name. Nothing may refer to it any more."""
    tx.run(_DROP_NAMED, owner=user_id, called=name)


def _columns(agent: StoredAgent) -> dict[str, Any]:
    fields = {name: getattr(agent, name) for name in _STORED}
    packed_fields = {name: packed(fields[name]) for name in _JSON}
    flags = {name: int(fields[name]) for name in ("can_write_knowledge", "can_write_skills")}
    return fields | packed_fields | flags


def _value(row: Row) -> StoredAgent:
    fields = row._asdict()
    unreadable = tuple(name for name in _JSON if not _is_readable(fields[name], _KINDS[name]))
    for name in _JSON:
        fields[name] = _UNREADABLE[name]() if name in unreadable else unpacked(fields[name])
    for name in ("tools_enabled", "external_tools_enabled"):  # plain names were kept once
        fields[name] = [_tool(tool) for tool in fields[name]]
    for name in ("can_write_knowledge", "can_write_skills"):
        fields[name] = bool(fields[name])
    return StoredAgent(**fields, unreadable=unreadable)


def _is_readable(text: Any, kind: Any) -> bool:
    try:
        msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, TypeError):
        return False
    return True


def _tool(tool: DeclaredTool) -> dict[str, Any]:
    return {"name": tool} if isinstance(tool, str) else tool


def _declared_tool(tool: dict[str, Any]) -> DeclaredTool:
    return tool["name"] if tool.keys() == {"name"} else tool
