"""Single values: the catalogue's revision and what `init` leaves behind."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Table, Text, bindparam, delete, select
from sqlalchemy.dialects.sqlite import insert

from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata

# `catalogue_revision`, and what `init` leaves: digests of the operator's token and of the setup link, first ids.
meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True, nullable=False),
    Column("value", Text, nullable=False),
)


REVISION: Final = "catalogue_revision"
INITIALISED: Final = "initialised_at"
OPERATOR: Final = "operator_user_id"
OPERATOR_TOKEN: Final = "operator_token_digest"  # noqa: S105  # the name of a digest
SETUP_TOKEN: Final = "setup_token_digest"  # noqa: S105

_GET: Final = select(meta.c.value).where(meta.c.key == bindparam("which"))
_insert = insert(meta).values(key=bindparam("key"), value=bindparam("value"))
_SET: Final = _insert.on_conflict_do_update(index_elements=["key"], set_={"value": _insert.excluded.value})
_DROP: Final = delete(meta).where(meta.c.key == bindparam("which"))


def get(tx: Transaction, key: str) -> str | None:
    """The value, or None."""
    found = tx.scalar(_GET, which=key)
    return None if found is None else str(found)


def put(tx: Transaction, key: str, value: str) -> None:
    """Create or replace the value."""
    tx.run(_SET, key=key, value=value)


def drop(tx: Transaction, key: str) -> bool:
    """Remove the value; False if there was none (a one-time link can be used once)."""
    return tx.run(_DROP, which=key) == 1


def revision(tx: Transaction) -> int:
    """The catalogue's revision; 0 before anything was declared."""
    return int(get(tx, REVISION) or 0)


def bump_revision(tx: Transaction) -> int:
    """The next revision: running servers reload within a second."""
    following = revision(tx) + 1
    put(tx, REVISION, str(following))
    return following
