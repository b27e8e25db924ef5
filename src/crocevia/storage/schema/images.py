"""Uploaded and generated pictures. Their bytes are files of the home, like those of attachments."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Float, ForeignKey, Index, Integer, Table, Text, text

from crocevia.storage.schema.metadata import metadata

# generation_id: the one generation that may use it.
image_uploads = Table(
    "image_uploads",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("mime_type", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("generation_id", Text),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
)

# request, result, error, files, usage: JSON. origin: how the caller reached us, for addresses in the webhook.
# webhook_event: set when there is something to tell; webhook_due_at null: delivered, given up, or nothing to tell.
# webhook_status: of the newest attempt's answer, null if nobody answered.
image_generations = Table(
    "image_generations",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("model", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("submitted_at", Float),
    Column("completed_at", Float),
    Column("expires_at", Float, nullable=False, index=True),
    Column("result", Text),
    Column("error", Text),
    Column("files", Text, nullable=False, server_default=text("'[]'")),
    Column("cost_usd", Float),
    Column("webhook_url", Text, nullable=False),
    Column("webhook_event", Text),
    Column("webhook_attempts", Integer, nullable=False, server_default=text("0")),
    Column("webhook_due_at", Float),
    Column("webhook_status", Integer),
    Column("webhook_delivered_at", Float),
    CheckConstraint("status in ('accepted', 'processing', 'succeeded', 'failed')", name="status"),
    Index(None, "user_id", "created_at"),
    Index(None, "status"),
    Index("ix_image_generations_due", "webhook_due_at", sqlite_where=text("webhook_due_at is not null")),
)
