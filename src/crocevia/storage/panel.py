"""Rows of the panel: sessions and the audit list."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Float, Index, Table, Text, bindparam, delete, select

from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting
from crocevia.storage.statements import Row

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


_s: Final = panel_sessions.c
_ADD_SESSION: Final = inserting(panel_sessions)
_SESSION: Final = select(panel_sessions).where(_s.digest == bindparam("which"), _s.expires_at > bindparam("now"))
_DROP_SESSION: Final = delete(panel_sessions).where(_s.digest == bindparam("which"))
_DROP_OTHERS: Final = delete(panel_sessions).where(_s.account == bindparam("of"), _s.digest != bindparam("kept"))
_DROP_EXPIRED: Final = delete(panel_sessions).where(_s.expires_at <= bindparam("now"))

_a: Final = audit.c
_ADD_AUDIT: Final = inserting(audit)
_PAGE: Final = select(audit).where(_a.id < bindparam("before")).order_by(_a.id.desc()).limit(bindparam("most"))
_PAGE_OF: Final = _PAGE.where(_a.kind == bindparam("of_kind"))


def add_session(tx: Transaction, digest: str, account: str, address: str, now: float, expires_at: float) -> None:
    """Remember a sign-in; expired ones go."""
    tx.run(_DROP_EXPIRED, now=now)
    tx.run(_ADD_SESSION, digest=digest, account=account, address=address, created_at=now, expires_at=expires_at)


def find_session(tx: Transaction, digest: str, now: float) -> Row | None:
    """The session with this digest, if it still holds."""
    return tx.first(_SESSION, which=digest, now=now)


def drop_session(tx: Transaction, digest: str) -> bool:
    """End one session."""
    return tx.run(_DROP_SESSION, which=digest) == 1


def drop_other_sessions(tx: Transaction, account: str, digest: str) -> int:
    """End every session of the account but this one."""
    return tx.run(_DROP_OTHERS, of=account, kept=digest)


def add_audit(
    tx: Transaction, *, id: str, at: float, account: str, address: str, action: str, kind: str, name: str, changes: str
) -> None:
    """One line of the audit list. changes: JSON."""
    tx.run(
        _ADD_AUDIT, id=id, at=at, account=account, address=address, action=action, kind=kind, name=name, changes=changes
    )


def audit_page(tx: Transaction, before: str, most: int, kind: str | None = None) -> list[Row]:
    """Lines older than the one called `before` (`~` is after every id), newest first."""
    if kind is None:
        return tx.all(_PAGE, before=before, most=most)
    return tx.all(_PAGE_OF, before=before, most=most, of_kind=kind)
