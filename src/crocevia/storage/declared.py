"""Rows of what is declared by name: engines, models, projects, recipes."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from sqlalchemy import Column, Float, Table, Text, bindparam, delete, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.sql.base import Executable

from crocevia.core.catalogue import EngineSpec, ModelSpec, ProjectSpec, RecipeSpec
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata


def _declared(name: str, key: str) -> Table:
    return Table(
        name,
        metadata,
        Column(key, Text, primary_key=True, nullable=False),
        Column("spec", Text, nullable=False),
        Column("created_at", Float, nullable=False),
        Column("updated_at", Float, nullable=False),
    )


# spec: the JSON of a `core.catalogue` value, so that a new setting needs no migration.
engines = _declared("engines", "name")
models = _declared("models", "name")
projects = _declared("projects", "name")
recipes = _declared("recipes", "encode")

Spec = TypeVar("Spec", EngineSpec, ModelSpec, ProjectSpec, RecipeSpec)

_TABLES: Final = {EngineSpec: engines, ModelSpec: models, ProjectSpec: projects, RecipeSpec: recipes}
_KEYS: Final = {kind: next(iter(table.primary_key.columns)) for kind, table in _TABLES.items()}
_ALL: Final = {kind: select(table).order_by(_KEYS[kind]) for kind, table in _TABLES.items()}

_BORN: Final = {kind: select(_KEYS[kind], table.c.created_at) for kind, table in _TABLES.items()}


def _upsert(table: Table) -> Executable:
    key = next(iter(table.primary_key.columns)).name
    made = insert(table).values({name: bindparam(name) for name in (key, "spec", "created_at", "updated_at")})
    changed = {"spec": made.excluded.spec, "updated_at": made.excluded.updated_at}
    return made.on_conflict_do_update(index_elements=[key], set_=changed)


_PUT: Final = {kind: _upsert(table) for kind, table in _TABLES.items()}

_DROP: Final = {kind: delete(table).where(_KEYS[kind] == bindparam("called")) for kind, table in _TABLES.items()}


def load(tx: Transaction, kind: type[Spec]) -> dict[str, Spec]:
    """Every declared value of a kind, by name. Raises msgspec.ValidationError if a row was tampered with."""
    return {row[0]: msgspec.json.decode(row.spec, type=kind) for row in tx.all(_ALL[kind])}


def born(tx: Transaction, kind: type[Spec]) -> dict[str, float]:
    """When each value of a kind was first declared, by name."""
    return {row[0]: row[1] for row in tx.all(_BORN[kind])}


def save(tx: Transaction, spec: EngineSpec | ModelSpec | ProjectSpec | RecipeSpec, now: float) -> None:
    """Create or replace the value of this name."""
    kind = type(spec)
    key = _KEYS[kind].name
    encoded = msgspec.json.encode(spec).decode()
    tx.run(_PUT[kind], **{key: getattr(spec, key), "spec": encoded, "created_at": now, "updated_at": now})


def drop(tx: Transaction, kind: type[Spec], name: str) -> None:
    """Remove the value of this name. Nothing may refer to it any more."""
    tx.run(_DROP[kind], called=name)
