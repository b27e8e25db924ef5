"""Every table. Times are Unix seconds (REAL); values that no query looks into are JSON text.

What `crocevia apply` declares is kept as the JSON of its `core.catalogue` value in `spec`: a new setting needs
no migration. A column exists where a query filters, joins or sums.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)

SCHEMA: Final = "0070"  # the newest migration; read before anything heavier is imported

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _declared(name: str, key: str) -> Table:
    return Table(
        name,
        metadata,
        Column(key, Text, primary_key=True, nullable=False),
        Column("spec", Text, nullable=False),
        Column("created_at", Float, nullable=False),
        Column("updated_at", Float, nullable=False),
    )


# `catalogue_revision`, and what `init` leaves: digests of the operator's token and of the setup link, first ids.
meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True, nullable=False),
    Column("value", Text, nullable=False),
)

engines = _declared("engines", "name")
models = _declared("models", "name")
projects = _declared("projects", "name")
recipes = _declared("recipes", "encode")

# digest: HMAC-SHA256, hex. prefix: enough of the key to recognise it. expires_at null: until removed.
project_keys = Table(
    "project_keys",
    metadata,
    Column("digest", Text, primary_key=True, nullable=False),
    Column("project", Text, ForeignKey("projects.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("prefix", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
)

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    CheckConstraint("role in ('operator', 'member')", name="role"),
)

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("metadata", Text, nullable=False, server_default=text("'{}'")),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
)

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

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("digest", Text, nullable=False, unique=True),
    Column("expires_at", Float),
    Column("revoked_at", Float),
    Column("created_at", Float, nullable=False),
)

# One row per call: written at admission with settled_at null, completed at the end (storage/records.py).
call_records = Table(
    "call_records",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("started_at", Float, nullable=False, index=True),
    Column("settled_at", Float),
    Column("door", Text, nullable=False),
    Column("encode", Text),
    Column("project", Text),
    Column("user_id", Text),
    Column("agent", Text),
    Column("model", Text),
    Column("engine", Text),
    Column("session_id", Text),
    Column("catalogue_revision", Integer, nullable=False),
    Column("reserved_usd", Float),
    Column("outcome", Text),
    Column("ended_by", Text),
    Column("input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("cache_read_tokens", Integer),
    Column("cache_write_tokens", Integer),
    Column("reasoning_tokens", Integer),
    Column("estimated", Integer, nullable=False, server_default=text("0")),
    Column("cost_usd", Float),
    Column("queue_seconds", Float),
    Column("first_byte_seconds", Float),
    Column("stream_seconds", Float),
    Column("bytes_in", Integer),
    Column("bytes_out", Integer),
    Column("partial", Integer, nullable=False, server_default=text("0")),
    Column("notes", Text),
    Index(None, "project", "started_at"),
    Index("ix_call_records_open", "id", sqlite_where=text("settled_at is null")),
)

# The rows of the control plane, the event log's tables and the panel's register themselves on `metadata`.
from . import schema_control as schema_control  # noqa: E402
from . import schema_log as schema_log  # noqa: E402
from . import schema_media as schema_media  # noqa: E402
from . import schema_panel as schema_panel  # noqa: E402
from . import schema_responses as schema_responses  # noqa: E402
from . import schema_spending as schema_spending  # noqa: E402
