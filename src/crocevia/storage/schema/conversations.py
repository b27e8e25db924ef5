"""The classic API's memory."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Table, Text

from crocevia.storage.schema.metadata import metadata

# The classic API's conversations, as text: ids sort by birth.
conversation_messages = Table(
    "conversation_messages",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("project", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("role", Text, nullable=False),
    Column("text", Text, nullable=False),
    Index(None, "project", "name", "id"),
    Index(None, "project", "at"),
)
