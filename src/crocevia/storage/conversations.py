"""Rows of the classic API's conversations: text only, per project and name, under the project's retention."""

from __future__ import annotations

from typing import Final, Literal

from sqlalchemy import Column, Float, Index, Table, Text, bindparam, delete, func, select

from crocevia.core.ids import new_id
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting
from crocevia.storage.statements import Row

# The classic API's conversations, as text: ids sort by birth.
conversation_messages = Table(
    "conversation_messages",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("project", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("role", Text, nullable=False),
    Column("text", Text, nullable=False),
    Index(None, "project", "name", "id"),
    Index(None, "project", "at"),
)


Role = Literal["user", "assistant"]

_c: Final = conversation_messages.c
_ADD: Final = inserting(conversation_messages)
_one: Final = (_c.project == bindparam("of"), _c.name == bindparam("called"))
_LAST: Final = select(_c.id, _c.at, _c.role, _c.text).where(*_one).order_by(_c.id.desc()).limit(bindparam("most"))
_DROP: Final = delete(conversation_messages).where(*_one)
_DROP_ALL: Final = delete(conversation_messages).where(_c.project == bindparam("of"))
_DROP_OLDER: Final = delete(conversation_messages).where(*_one, _c.id < bindparam("first"))
_last_word: Final = (
    select(_c.name)
    .where(_c.project == bindparam("of"))
    .group_by(_c.name)
    .having(func.max(_c.at) <= bindparam("before"))
)
_EXPIRE: Final = delete(conversation_messages).where(_c.project == bindparam("of"), _c.name.in_(_last_word))
_PROJECTS: Final = select(_c.project).distinct()
_NAMES: Final = (
    select(_c.name, func.count().label("messages"), func.max(_c.at).label("last_at"))
    .where(_c.project == bindparam("of"))
    .group_by(_c.name)
    .order_by(func.max(_c.at).desc())
)


def add_messages(tx: Transaction, project: str, name: str, texts: list[tuple[Role, str]], now: float) -> None:
    """Append to a conversation."""
    # Identifiers of one millisecond are in no order of their own.
    for made, (role, said) in zip(sorted(new_id("msg") for _ in texts), texts, strict=True):
        tx.run(_ADD, id=made, project=project, name=name, at=now, role=role, text=said)


def last_messages(tx: Transaction, project: str, name: str, most: int) -> list[Row]:
    """The last messages as (id, at, role, text), oldest first."""
    return tx.all(_LAST, of=project, called=name, most=most)[::-1]


def trim(tx: Transaction, project: str, name: str, most: int) -> int:
    """Forget all but the last `most` messages."""
    kept = last_messages(tx, project, name, most)
    return tx.run(_DROP_OLDER, of=project, called=name, first=kept[0].id) if kept else 0


def forget(tx: Transaction, project: str, name: str | None = None) -> int:
    """Delete one conversation, or all of the project; how many messages there were."""
    return tx.run(_DROP_ALL, of=project) if name is None else tx.run(_DROP, of=project, called=name)


def expire(tx: Transaction, project: str, before: float) -> int:
    """Delete the conversations whose last word is older."""
    return tx.run(_EXPIRE, of=project, before=before)


def names(tx: Transaction, project: str) -> list[Row]:
    """A project's conversations as (name, messages, last_at), the most recent first."""
    return tx.all(_NAMES, of=project)


def projects(tx: Transaction) -> list[str]:
    """Projects that have stored conversations."""
    return [row.project for row in tx.all(_PROJECTS)]
