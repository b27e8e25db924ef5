"""Rows of answers that callers can come back to."""

from __future__ import annotations

from math import inf
from typing import Any, Final

import msgspec
from sqlalchemy import (
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    or_,
    select,
    text,
    update,
)

from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.statements import Row

# input: what this request added, output and resource: the answer, events: its stream where it can be replayed;
# all JSON. chat: where its turn is, which has the same ULID.
# subject, agent, session: who may go on from it. visible 0: kept for its session only.
# A deleted answer leaves its place in the chain, empty, until it would have expired.
responses = Table(
    "responses",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("subject", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("session", Text),
    Column("previous_id", Text),
    Column("status", Text, nullable=False),
    Column("visible", Integer, nullable=False, server_default=text("1")),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
    Column("input", LargeBinary, nullable=False),
    Column("resource", LargeBinary, nullable=False),
    Column("events", LargeBinary),
    Column("chat", Text),
    Index("ix_responses_unfinished", "status", sqlite_where=text("status in ('queued', 'in_progress')")),
    Index(
        "ix_responses_session", "subject", "agent", "session", "created_at", sqlite_where=text("session is not null")
    ),
)


_c: Final = responses.c

WHOLE: Final = ("completed", "incomplete")
"""Statuses of answers that others go on from."""
DELETED: Final = "deleted"


class StoredResponse(msgspec.Struct, frozen=True, kw_only=True):
    """input: the items that the request added, a JSON array. resource: the answer as it was told, a JSON object.

    events: its stream, where that can be replayed. visible: the caller wanted it kept. chat: the one in which it is a
    turn.
    """

    id: str
    subject: str
    agent: str
    session: str | None
    previous_id: str | None
    status: str
    visible: bool
    created_at: float
    expires_at: float
    input: bytes
    resource: bytes
    events: bytes | None = None
    chat: str | None = None

    def __repr__(self) -> str:
        return f"StoredResponse(id={self.id!r}, status={self.status!r})"


_PUT: Final = (
    insert(responses)
    .prefix_with("OR REPLACE")
    .values({name: bindparam(name) for name in StoredResponse.__struct_fields__})
)
_FIND: Final = select(responses).where(_c.id == bindparam("which"))
_NO_EVENTS: Final = select(*(column for column in _c if column.name != "events")).where(_c.id == bindparam("which"))
_SESSION: Final = (
    _c.subject == bindparam("of"),
    _c.agent == bindparam("by"),
    _c.session == bindparam("within"),
)
_NEWEST: Final = (
    select(_c.id)
    .where(
        *_SESSION,
        or_(*(_c.status == one for one in WHOLE)),
        _c.expires_at > bindparam("now"),
        _c.created_at < bindparam("before"),
    )
    .order_by(_c.created_at.desc(), _c.id.desc())
    .limit(1)
)
_ANY_DELETED: Final = select(_c.id).where(*_SESSION, _c.status == DELETED).limit(1)
_UNFINISHED: Final = select(responses).where(_c.status.in_(("queued", "in_progress")))
_EMPTY: Final = (
    update(responses)
    .where(_c.id == bindparam("which"))
    .values(status=DELETED, visible=0, input=b"[]", resource=b"{}", events=None)
)
_EXPIRE: Final = delete(responses).where(_c.expires_at <= bindparam("now"))


def put_all(tx: Transaction, found: list[StoredResponse]) -> None:
    """Create or replace."""
    tx.run_many(_PUT, [msgspec.structs.asdict(one) | {"visible": int(one.visible)} for one in found])


def find(tx: Transaction, response_id: str) -> StoredResponse | None:
    """Whoever it belongs to, expired or not."""
    row = tx.first(_FIND, which=response_id)
    return None if row is None else _value(row)


def find_without_events(tx: Transaction, response_id: str) -> StoredResponse | None:
    """The same, for those who go on from it: the stream can be many times as long as the answer."""
    row = tx.first(_NO_EVENTS, which=response_id)
    return None if row is None else _value(row)


def newest(tx: Transaction, subject: str, agent: str, session: str, now: float, before: float = inf) -> str | None:
    """The id of the session's last whole answer (before a moment)."""
    found: str | None = tx.scalar(_NEWEST, of=subject, by=agent, within=session, now=now, before=before)
    return found


def any_deleted(tx: Transaction, subject: str, agent: str, session: str) -> bool:
    """Whether an answer of the session was deleted."""
    return tx.first(_ANY_DELETED, of=subject, by=agent, within=session) is not None


def unfinished(tx: Transaction) -> list[StoredResponse]:
    """Answers that were being made when they were last written."""
    return [_value(row) for row in tx.all(_UNFINISHED)]


def delete_one(tx: Transaction, response_id: str) -> bool:
    """Empty its place in the chain. False if there is none."""
    return tx.run(_EMPTY, which=response_id) == 1


def expire(tx: Transaction, now: float) -> int:
    """Forget what is past its time; how many."""
    return tx.run(_EXPIRE, now=now)


def _value(row: Row) -> StoredResponse:
    fields: dict[str, Any] = {name: getattr(row, name, None) for name in StoredResponse.__struct_fields__}
    return StoredResponse(**fields | {"visible": bool(row.visible)})
