"""What an operator declares, and single values: the catalogue's revision, what `init` leaves behind.

A declared value is kept as the JSON of its `core.catalogue` value in `spec`: a new setting needs no migration.
"""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Table, Text

from crocevia.storage.schema.metadata import metadata


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
