"""Rows of chats' attachments."""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy import Column, Float, ForeignKey, Index, Integer, Table, Text, bindparam, delete, func, select, update

from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting
from crocevia.storage.statements import Row

# The bytes are a file of the home, named by the row's id (runtime/files/blobs.py); a row is what makes them anybody's.
# deleted_at: the bytes are gone, the row tells so until it expires. attached_at: the first message that carried it.
chat_attachments = Table(
    "chat_attachments",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("workspace_id", Text, nullable=False),
    Column("chat_id", Text, ForeignKey("chats.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("mime_type", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("idempotency_key", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
    Column("attached_at", Float),
    Column("deleted_at", Float),
    Index(None, "chat_id", "idempotency_key", unique=True),
    Index(None, "user_id", "deleted_at"),
)


class StoredAttachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a chat, named by its id among the bytes. Times are Unix seconds."""

    id: str
    workspace_id: str
    chat_id: str
    user_id: str
    name: str
    mime_type: str
    size: int
    """Bytes."""
    sha256: str
    idempotency_key: str
    revision: int
    created_at: float
    expires_at: float
    attached_at: float | None = None
    deleted_at: float | None = None


_c: Final = chat_attachments.c
_FIND: Final = select(chat_attachments).where(_c.id == bindparam("which"), _c.chat_id == bindparam("within"))
_OF_USER: Final = select(chat_attachments).where(_c.id == bindparam("which"), _c.user_id == bindparam("owner"))
_BY_KEY: Final = select(chat_attachments).where(
    _c.chat_id == bindparam("within"), _c.idempotency_key == bindparam("given")
)
_LIVE: Final = (
    select(chat_attachments)
    .where(_c.chat_id == bindparam("within"), _c.deleted_at.is_(None))
    .order_by(_c.id)
    .limit(bindparam("most"))
)
_COUNT: Final = select(func.count()).where(_c.chat_id == bindparam("within"), _c.deleted_at.is_(None))
_HELD: Final = select(func.coalesce(func.sum(_c.size), 0)).where(
    _c.user_id == bindparam("owner"), _c.deleted_at.is_(None)
)
_ADD: Final = inserting(chat_attachments, *StoredAttachment.__struct_fields__)
_DELETE: Final = (
    update(chat_attachments)
    .where(_c.id == bindparam("which"), _c.deleted_at.is_(None))
    .values(deleted_at=bindparam("now"), revision=_c.revision + 1, expires_at=bindparam("until"))
)
_ATTACH: Final = (
    update(chat_attachments)
    .where(_c.id == bindparam("which"), _c.attached_at.is_(None))
    .values(attached_at=bindparam("now"), expires_at=bindparam("until"))
)
_EXPIRED: Final = select(_c.id).where(_c.expires_at <= bindparam("now")).limit(1000)
_DROP: Final = delete(chat_attachments).where(_c.id == bindparam("which"))
_KEPT: Final = select(_c.id).where(_c.deleted_at.is_(None))


def add(tx: Transaction, attachment: StoredAttachment) -> None:
    """Keep a new one."""
    tx.run(_ADD, **msgspec.structs.asdict(attachment))


def find(tx: Transaction, chat_id: str, attachment_id: str) -> StoredAttachment | None:
    """The chat's attachment of this id, deleted ones too."""
    return _value(tx.first(_FIND, within=chat_id, which=attachment_id))


def find_of_user(tx: Transaction, user_id: str, attachment_id: str) -> StoredAttachment | None:
    """The user's attachment of this id, of whichever chat, deleted ones too."""
    return _value(tx.first(_OF_USER, owner=user_id, which=attachment_id))


def by_key(tx: Transaction, chat_id: str, key: str) -> StoredAttachment | None:
    """What this Idempotency-Key has made."""
    return _value(tx.first(_BY_KEY, within=chat_id, given=key))


def live(tx: Transaction, chat_id: str, most: int) -> list[StoredAttachment]:
    """What is there, oldest first."""
    return [StoredAttachment(**row._asdict()) for row in tx.all(_LIVE, within=chat_id, most=most)]


def count(tx: Transaction, chat_id: str) -> int:
    """How many a chat has."""
    return int(tx.scalar(_COUNT, within=chat_id))


def held(tx: Transaction, user_id: str) -> int:
    """Bytes that a user's attachments take."""
    return int(tx.scalar(_HELD, owner=user_id))


def mark_deleted(tx: Transaction, attachment_id: str, now: float, until: float) -> bool:
    """Whether it was there. until: how long the row still tells so."""
    return tx.run(_DELETE, which=attachment_id, now=now, until=until) == 1


def mark_attached(tx: Transaction, attachment_id: str, now: float, until: float) -> None:
    """A message carries it; the first one counts."""
    tx.run(_ATTACH, which=attachment_id, now=now, until=until)


def drop_expired(tx: Transaction, now: float) -> list[str]:
    """Ids of at most 1,000 rows that had expired; they are gone."""
    found = [row.id for row in tx.all(_EXPIRED, now=now)]
    for which in found:
        tx.run(_DROP, which=which)
    return found


def kept(tx: Transaction) -> set[str]:
    """Ids of all that have bytes."""
    return {row.id for row in tx.all(_KEPT)}


def _value(row: Row | None) -> StoredAttachment | None:
    return None if row is None else StoredAttachment(**row._asdict())
