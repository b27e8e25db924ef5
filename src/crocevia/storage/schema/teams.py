"""Agents, teams, and the client tools that they can ask for."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Float, ForeignKey, Index, Integer, Table, Text, text

from crocevia.storage.schema.metadata import metadata

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

# parameters: a JSON schema whose root is an object.
user_tools = Table(
    "user_tools",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("parameters", Text, nullable=False),
    Column("timeout_seconds", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Index(None, "user_id", "name", unique=True),
)
