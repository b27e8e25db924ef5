"""Users and what is theirs alone: workspaces and API keys."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Float, ForeignKey, Table, Text, text

from crocevia.storage.schema.metadata import metadata

# allowance: JSON of what the user may use of models in a day.
users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("allowance", Text, nullable=False, server_default=text("'{}'")),
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
