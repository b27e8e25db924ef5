"""Rows of projects' keys: how to recognise them, until when they hold. Never the key."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Float, ForeignKey, Table, Text, bindparam, delete, or_, select, update

from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting
from crocevia.storage.statements import Row

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


_k: Final = project_keys.c
_ALL: Final = select(project_keys).order_by(_k.created_at, _k.digest)
_ADD: Final = inserting(project_keys, "digest", "project", "prefix", "created_at", "expires_at")
_OF: Final = select(project_keys).where(_k.project == bindparam("of")).order_by(_k.created_at.desc(), _k.digest)
_EXPIRE: Final = (
    update(project_keys)
    .where(_k.project == bindparam("of"), or_(_k.expires_at.is_(None), _k.expires_at > bindparam("at")))
    .values(expires_at=bindparam("at"))
)
_DROP: Final = delete(project_keys).where(_k.project == bindparam("of"), _k.digest == bindparam("which"))
_DROP_ALL: Final = delete(project_keys).where(_k.project == bindparam("of"))
_DROP_EXPIRED: Final = delete(project_keys).where(_k.project == bindparam("of"), _k.expires_at <= bindparam("now"))


def load(tx: Transaction) -> list[Row]:
    """Rows of (digest, project, prefix, created_at, expires_at), of all projects."""
    return tx.all(_ALL)


def add(tx: Transaction, digest: str, project: str, prefix: str, now: float) -> None:
    """One more key for the project. Raises sqlite3.IntegrityError if the digest is known already."""
    tx.run(_ADD, digest=digest, project=project, prefix=prefix, created_at=now, expires_at=None)


def listed(tx: Transaction, project: str) -> list[Row]:
    """Rows of (digest, project, prefix, created_at, expires_at), newest first."""
    return tx.all(_OF, of=project)


def expire(tx: Transaction, project: str, at: float) -> int:
    """Let every key that would hold longer end at `at`."""
    return tx.run(_EXPIRE, of=project, at=at)


def drop(tx: Transaction, project: str, digest: str) -> bool:
    """Revoke one key of the project now."""
    return tx.run(_DROP, of=project, which=digest) == 1


def drop_all(tx: Transaction, project: str) -> int:
    """Revoke every key of the project."""
    return tx.run(_DROP_ALL, of=project)


def drop_expired(tx: Transaction, project: str, now: float) -> int:
    """Forget keys that open nothing any more."""
    return tx.run(_DROP_EXPIRED, of=project, now=now)
