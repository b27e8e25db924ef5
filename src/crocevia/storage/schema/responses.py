"""The table of answers that callers of `/v1/responses` can come back to."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, Table, Text, text

from crocevia.storage.schema.metadata import metadata

# input: what this request added, output and resource: the answer, events: its stream where it can be replayed;
# all JSON. chat: where its turn is, which has the same ULID.
# subject, agent, session: who may go on from it. visible 0: kept for its session only.
responses = Table(
    "responses",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("subject", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("session", Text),
    Column("previous_id", Text),
    Column("status", Text, nullable=False),
    Column("visible", Integer, nullable=False, server_default=text("1")),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
    Column("input", LargeBinary, nullable=False),
    Column("resource", LargeBinary, nullable=False),
    Column("events", LargeBinary),
    Column("chat", Text),
    Index("ix_responses_unfinished", "status", sqlite_where=text("status in ('queued', 'in_progress')")),
    Index(
        "ix_responses_session", "subject", "agent", "session", "created_at", sqlite_where=text("session is not null")
    ),
)
