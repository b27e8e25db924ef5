"""Rows of projects' keys beyond what `declared` needs: one by one, with an end."""

from __future__ import annotations

from typing import Final

from sqlalchemy import bindparam, delete, or_, select, update

from .database import Transaction
from .schema import project_keys
from .statements import Row

_k: Final = project_keys.c
_OF: Final = select(project_keys).where(_k.project == bindparam("of")).order_by(_k.created_at.desc(), _k.digest)
_EXPIRE: Final = (
    update(project_keys)
    .where(_k.project == bindparam("of"), or_(_k.expires_at.is_(None), _k.expires_at > bindparam("at")))
    .values(expires_at=bindparam("at"))
)
_DROP: Final = delete(project_keys).where(_k.project == bindparam("of"), _k.digest == bindparam("which"))
_DROP_EXPIRED: Final = delete(project_keys).where(_k.project == bindparam("of"), _k.expires_at <= bindparam("now"))


def keys_of(tx: Transaction, project: str) -> list[Row]:
    """Rows of (digest, project, prefix, created_at, expires_at), newest first."""
    return tx.all(_OF, of=project)


def expire_keys(tx: Transaction, project: str, at: float) -> int:
    """Let every key that would hold longer end at `at`."""
    return tx.run(_EXPIRE, of=project, at=at)


def drop_key(tx: Transaction, project: str, digest: str) -> bool:
    """Revoke one key of the project now."""
    return tx.run(_DROP, of=project, which=digest) == 1


def drop_expired_keys(tx: Transaction, project: str, now: float) -> int:
    """Forget keys that open nothing any more."""
    return tx.run(_DROP_EXPIRED, of=project, now=now)
