"""Rows of API keys: whose they are, how to recognise them, until when they hold. Never the key."""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy import Column, Float, ForeignKey, Table, Text, bindparam, func, select, update

from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting, packed, unpacked
from crocevia.storage.statements import Row

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


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """expires_at None: until revoked. revoked_at None: not revoked."""

    id: str
    user_id: str
    name: str
    scopes: tuple[str, ...]
    expires_at: float | None
    revoked_at: float | None
    created_at: float

    def holds(self, now: float) -> bool:
        """Whether it opens anything at this moment."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


_OWNED: Final = api_keys.c.user_id == bindparam("owner")
_BY_DIGEST: Final = select(api_keys).where(api_keys.c.digest == bindparam("digest"))
_BY_ID: Final = select(api_keys).where(api_keys.c.id == bindparam("which"))
_LIST: Final = select(api_keys).where(_OWNED).order_by(api_keys.c.id.desc()).limit(bindparam("most"))
_COUNT: Final = select(func.count()).select_from(api_keys).where(_OWNED, api_keys.c.revoked_at.is_(None))
_ADD: Final = inserting(api_keys, "id", "user_id", "name", "scopes", "digest", "expires_at", "created_at")
_REVOKE: Final = (
    update(api_keys)
    .where(api_keys.c.id == bindparam("which"), _OWNED)
    .values(revoked_at=func.coalesce(api_keys.c.revoked_at, bindparam("now")))
)


def add(
    tx: Transaction,
    key_id: str,
    user_id: str,
    name: str,
    digest: str,
    scopes: list[str],
    expires_at: float | None,
    now: float,
) -> None:
    """Keep what is needed to recognise and revoke a key that was just minted."""
    tx.run(
        _ADD,
        id=key_id,
        user_id=user_id,
        name=name,
        scopes=packed(scopes),
        digest=digest,
        expires_at=expires_at,
        created_at=now,
    )


def find_by_digest(tx: Transaction, digest: str) -> ApiKey | None:
    """The key with this digest (hex)."""
    row = tx.first(_BY_DIGEST, digest=digest)
    return None if row is None else _value(row)


def find(tx: Transaction, key_id: str) -> ApiKey | None:
    """The key of this id, whoever owns it."""
    row = tx.first(_BY_ID, which=key_id)
    return None if row is None else _value(row)


def listed(tx: Transaction, user_id: str, most: int) -> list[ApiKey]:
    """The user's keys, revoked ones too, newest first."""
    return [_value(row) for row in tx.all(_LIST, owner=user_id, most=most)]


def count_live(tx: Transaction, user_id: str) -> int:
    """How many keys of the user are not revoked."""
    found: int = tx.scalar(_COUNT, owner=user_id)
    return found


def revoke(tx: Transaction, user_id: str, key_id: str, now: float) -> bool:
    """End the key; the first time counts. False if the user has no such key."""
    return tx.run(_REVOKE, owner=user_id, which=key_id, now=now) == 1


def _value(row: Row) -> ApiKey:
    return ApiKey(
        id=row.id,
        user_id=row.user_id,
        name=row.name,
        scopes=tuple(unpacked(row.scopes)),
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        created_at=row.created_at,
    )
