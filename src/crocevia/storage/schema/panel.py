"""The panel's own tables: who is signed in, and what was changed by whom."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Table, Text

from crocevia.storage.schema.metadata import metadata

# digest: HMAC-SHA256 of the cookie, hex. address: where the sign-in came from, for the person to recognise it.
panel_sessions = Table(
    "panel_sessions",
    metadata,
    Column("digest", Text, primary_key=True, nullable=False),
    Column("account", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
)

# Written in the transaction of the change itself. changes: JSON object, field to [before, after]; never a secret.
audit = Table(
    "audit",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("at", Float, nullable=False),
    Column("account", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("changes", Text, nullable=False),
    Index(None, "kind", "name"),
)
