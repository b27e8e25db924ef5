"""Projects' keys: several at a time, so that an app can change its key without a pause."""

from __future__ import annotations

import msgspec

from crocevia.core.catalogue import ProjectSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.catalogue import digest
from crocevia.runtime.control.apply import new_project_key
from crocevia.storage import declared, meta
from crocevia.storage import project_keys as rows
from crocevia.storage.database import Transaction
from crocevia.storage.home import Home, key_secret

_SHOWN = 8  # characters of a key that are shown afterwards


class ProjectKeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A key as it is remembered."""

    id: str
    """Its digest."""
    prefix: str
    """How it begins."""
    created_at: float
    expires_at: float | None
    """Unix seconds, None for never."""


def keys(tx: Transaction, project: str, now: float) -> list[ProjectKeyRow]:
    """The project's keys that open something, newest first."""
    return [
        ProjectKeyRow(id=row.digest, prefix=row.prefix, created_at=row.created_at, expires_at=row.expires_at)
        for row in rows.listed(tx, project)
        if row.expires_at is None or row.expires_at > now
    ]


def rotate(tx: Transaction, home: Home, project: str, *, overlap: float, now: float) -> str:
    """A new key, shown now and never again; the old ones hold for `overlap` seconds more.

    Raises GatewayError(NOT_FOUND).
    """
    if project not in declared.load(tx, ProjectSpec):
        raise GatewayError(Reason.NOT_FOUND)
    key = new_project_key()
    rows.drop_expired(tx, project, now)
    rows.expire(tx, project, now + overlap)
    rows.add(tx, digest(key_secret(home), key.encode()).hex(), project, key[:_SHOWN], now)
    meta.bump_revision(tx)
    return key


def revoke(tx: Transaction, project: str, key_id: str) -> None:
    """End one key now. Raises GatewayError(NOT_FOUND)."""
    if not rows.drop(tx, project, key_id):
        raise GatewayError(Reason.NOT_FOUND)
    meta.bump_revision(tx)
