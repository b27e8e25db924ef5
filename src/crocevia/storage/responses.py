"""Rows of answers that callers can come back to."""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy import Column, Float, Index, Integer, LargeBinary, Table, Text, bindparam, delete, insert, select, text

from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.statements import Row

# input: what this request added, output and resource: the answer, events: its stream where it can be replayed;
# all JSON. chat: where its turn is, which has the same ULID.
# subject, agent, session: who may go on from it. visible 0: kept for its session only.
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
_NEWEST: Final = (
    select(_c.id)
    .where(
        _c.subject == bindparam("of"),
        _c.agent == bindparam("by"),
        _c.session == bindparam("within"),
        _c.status != "failed",
        _c.expires_at > bindparam("now"),
    )
    .order_by(_c.created_at.desc(), _c.id.desc())
    .limit(1)
)
_UNFINISHED: Final = select(responses).where(_c.status.in_(("queued", "in_progress")))
_DROP: Final = delete(responses).where(_c.id == bindparam("which"))
_EXPIRE: Final = delete(responses).where(_c.expires_at <= bindparam("now"))


def put_all(tx: Transaction, found: list[StoredResponse]) -> None:
    """Create or replace."""
    tx.run_many(_PUT, [msgspec.structs.asdict(one) | {"visible": int(one.visible)} for one in found])


def find(tx: Transaction, response_id: str) -> StoredResponse | None:
    """Whoever it belongs to, expired or not."""
    row = tx.first(_FIND, which=response_id)
    return None if row is None else _value(row)


def newest(tx: Transaction, subject: str, agent: str, session: str, now: float) -> str | None:
    """The id of the session's last answer that did not fail."""
    found: str | None = tx.scalar(_NEWEST, of=subject, by=agent, within=session, now=now)
    return found


def unfinished(tx: Transaction) -> list[StoredResponse]:
    """Answers that were being made when they were last written."""
    return [_value(row) for row in tx.all(_UNFINISHED)]


def drop(tx: Transaction, response_id: str) -> bool:
    """False if there was none."""
    return tx.run(_DROP, which=response_id) == 1


def expire(tx: Transaction, now: float) -> int:
    """Forget what is past its time; how many."""
    return tx.run(_EXPIRE, now=now)


def _value(row: Row) -> StoredResponse:
    return StoredResponse(
        **{name: getattr(row, name) for name in StoredResponse.__struct_fields__ if name != "visible"},
        visible=bool(row.visible),
    )
