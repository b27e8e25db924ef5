"""Chats, one completion per turn, and the files that come with messages.

An attachment's bytes are a file of the home, named by the row's id (runtime/files/blobs.py); a row is what makes
them anybody's.
"""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Float, ForeignKey, Index, Integer, Table, Text, text

from crocevia.storage.schema.metadata import metadata

# Ids sort by birth: (workspace_id, id) is the order of a list and the key of its pages.
chats = Table(
    "chats",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("workspace_id", Text, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("team_id", Text, ForeignKey("teams.id"), nullable=False, index=True),
    Column("title", Text),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Index(None, "workspace_id", "id"),
)

# One per turn, with the turn's id. models_subagents, usage, usage_cost, terminal_snapshot: JSON. cost_usd null:
# unknown.
# A turn ends once: closing changes only a row that is still `running`, and the snapshot is never written again.
# Later prices change usage_cost and cost_usd alone.
completions = Table(
    "completions",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("workspace_id", Text, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("chat_id", Text, ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    Column("team_id", Text, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("model_orchestrator", Text),
    Column("models_subagents", Text, nullable=False, server_default=text("'[]'")),
    Column("status", Text, nullable=False),
    Column("finish_reason", Text),
    Column("started_at", Float, nullable=False),
    Column("finished_at", Float),
    Column("duration_ms", Integer),
    Column("usage", Text, nullable=False, server_default=text("'{}'")),
    Column("cost_usd", Float),
    Column("usage_cost", Text),
    Column("terminal_snapshot", Text),
    Column("content_hash", Text),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    CheckConstraint("status in ('running', 'succeeded', 'failed', 'canceled')", name="status"),
    Index(None, "chat_id", "started_at", "id"),
)

# deleted_at: the bytes are gone, the row tells so until it expires. attached_at: the first message that carried it.
chat_attachments = Table(
    "chat_attachments",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("workspace_id", Text, nullable=False),
    Column("chat_id", Text, ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("mime_type", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("idempotency_key", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
    Column("attached_at", Float),
    Column("deleted_at", Float),
    Index(None, "chat_id", "idempotency_key", unique=True),
    Index(None, "user_id", "deleted_at"),
)
