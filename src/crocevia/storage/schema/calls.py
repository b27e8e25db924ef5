"""Calls of models, one row each."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, Table, Text, text

from crocevia.storage.schema.metadata import metadata

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
    Column("first_byte_seconds", Float),
    Column("stream_seconds", Float),
    Column("bytes_in", Integer),
    Column("bytes_out", Integer),
    Column("partial", Integer, nullable=False, server_default=text("0")),
    Column("notes", Text),
    Index(None, "project", "started_at"),
    Index("ix_call_records_user", "user_id", "started_at", sqlite_where=text("user_id is not null")),
    Index("ix_call_records_open", "id", sqlite_where=text("settled_at is null")),
)
