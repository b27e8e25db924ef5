"""Rows of uploaded and generated pictures."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    bindparam,
    delete,
    func,
    or_,
    select,
    text,
    update,
)

from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting, packed, setting, unpacked
from crocevia.storage.statements import Row

# generation_id: the one generation that may use it.
image_uploads = Table(
    "image_uploads",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("mime_type", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("generation_id", Text),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
)

# request, result, error, files, usage: JSON. origin: how the caller reached us, for addresses in the webhook.
# webhook_event: set when there is something to tell; webhook_due_at null: delivered, given up, or nothing to tell.
# webhook_status: of the newest attempt's answer, null if nobody answered.
image_generations = Table(
    "image_generations",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("model", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("submitted_at", Float),
    Column("completed_at", Float),
    Column("expires_at", Float, nullable=False, index=True),
    Column("result", Text),
    Column("error", Text),
    Column("files", Text, nullable=False, server_default=text("'[]'")),
    Column("cost_usd", Float),
    Column("webhook_url", Text, nullable=False),
    Column("webhook_event", Text),
    Column("webhook_attempts", Integer, nullable=False, server_default=text("0")),
    Column("webhook_due_at", Float),
    Column("webhook_status", Integer),
    Column("webhook_delivered_at", Float),
    CheckConstraint("status in ('accepted', 'processing', 'succeeded', 'failed')", name="status"),
    Index(None, "user_id", "created_at"),
    Index(None, "status"),
    Index("ix_image_generations_due", "webhook_due_at", sqlite_where=text("webhook_due_at is not null")),
)


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that one generation may use. Times are Unix seconds."""

    id: str
    user_id: str
    name: str
    mime_type: str
    size: int
    """Bytes."""
    created_at: float
    expires_at: float
    generation_id: str | None = None


class ImageFile(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that was made, named by its id among the bytes."""

    artifact_id: str
    mime_type: str
    size: int


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """request: as it was validated. origin: scheme and host by which the caller reached us."""

    id: str
    user_id: str
    model: str
    provider: str
    status: str
    request: dict[str, Any]
    origin: str
    created_at: float
    expires_at: float
    webhook_url: str
    submitted_at: float | None = None
    completed_at: float | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    files: tuple[ImageFile, ...] = ()
    cost_usd: float | None = None
    webhook_event: str | None = None
    webhook_attempts: int = 0
    webhook_due_at: float | None = None
    webhook_status: int | None = None
    webhook_delivered_at: float | None = None


_u: Final = image_uploads.c
_g: Final = image_generations.c
_UNFINISHED: Final = or_(_g.status == "accepted", _g.status == "processing")
_ADD_UPLOAD: Final = inserting(image_uploads, *Upload.__struct_fields__)
_UPLOAD: Final = select(image_uploads).where(_u.id == bindparam("which"), _u.user_id == bindparam("owner"))
_HELD: Final = select(func.coalesce(func.sum(_u.size), 0)).where(
    _u.user_id == bindparam("owner"), _u.expires_at > bindparam("now")
)
_BIND: Final = (
    update(image_uploads)
    .where(
        _u.id == bindparam("which"),
        or_(_u.generation_id.is_(None), _u.generation_id == bindparam("generation")),
    )
    .values(generation_id=bindparam("generation"))
)
_ADD: Final = inserting(image_generations, *Generation.__struct_fields__)
_FIND: Final = select(image_generations).where(_g.id == bindparam("which"))
_OPEN: Final = select(image_generations).where(_UNFINISHED).order_by(_g.id)
_WAITING: Final = select(func.count()).where(_g.user_id == bindparam("owner"), _UNFINISHED)
_SUBMIT: Final = (
    update(image_generations)
    .where(_g.id == bindparam("which"), _g.status == "accepted")
    .values(status="processing", submitted_at=bindparam("now"))
)
_END: Final = (
    update(image_generations)
    .where(_g.id == bindparam("which"), _UNFINISHED)
    .values(
        setting(*("status", "completed_at", "result", "error", "files", "cost_usd", "webhook_event", "webhook_due_at"))
    )
)
_DUE: Final = select(image_generations).where(_g.webhook_due_at.is_not(None)).order_by(_g.webhook_due_at).limit(100)
_ATTEMPTED: Final = (
    update(image_generations)
    .where(_g.webhook_event == bindparam("which"), _g.webhook_due_at.is_not(None))
    .values(
        setting("webhook_due_at", "webhook_status", "webhook_delivered_at")
        | {"webhook_attempts": _g.webhook_attempts + 1}
    )
)
_AGAIN: Final = (
    update(image_generations)
    .where(_g.webhook_event == bindparam("which"))
    .values(setting("webhook_due_at") | {"webhook_delivered_at": None})
)
_TOLD: Final = (
    select(image_generations)
    .where(_g.webhook_event.is_not(None))
    .order_by(_g.completed_at.desc(), _g.id)
    .limit(bindparam("most"))
)
# An hour of grace: what runs or is being told of is not pulled away.
_DROP_UPLOADS: Final = delete(image_uploads).where(_u.expires_at <= bindparam("now"))
_DROP: Final = delete(image_generations).where(_g.expires_at <= bindparam("now"))
_UPLOADS: Final = select(_u.id)
_FILES: Final = select(_g.files).where(_g.files != "[]")


def add_upload(tx: Transaction, upload: Upload) -> None:
    """Keep a new one."""
    tx.run(_ADD_UPLOAD, **msgspec.structs.asdict(upload))


def upload(tx: Transaction, user_id: str, upload_id: str) -> Upload | None:
    """The user's upload of this id."""
    row = tx.first(_UPLOAD, owner=user_id, which=upload_id)
    return None if row is None else Upload(**row._asdict())


def held(tx: Transaction, user_id: str, now: float) -> int:
    """Bytes of the user's uploads that have not expired."""
    return int(tx.scalar(_HELD, owner=user_id, now=now))


def bind_upload(tx: Transaction, upload_id: str, generation_id: str) -> bool:
    """Give an upload to a generation; False if another one has it."""
    return tx.run(_BIND, which=upload_id, generation=generation_id) == 1


def add(tx: Transaction, made: Generation) -> None:
    """Keep a new one."""
    values = msgspec.structs.asdict(made) | {"request": packed(made.request), "files": packed(made.files)}
    tx.run(_ADD, **values)


def find(tx: Transaction, generation_id: str) -> Generation | None:
    """The generation of this id, whoever owns it."""
    row = tx.first(_FIND, which=generation_id)
    return None if row is None else _value(row)


def unfinished(tx: Transaction) -> list[Generation]:
    """What waits or runs, oldest first."""
    return [_value(row) for row in tx.all(_OPEN)]


def count_unfinished(tx: Transaction, user_id: str) -> int:
    """How many of the user's wait or run."""
    return int(tx.scalar(_WAITING, owner=user_id))


def submitted(tx: Transaction, generation_id: str, now: float) -> bool:
    """Note that the provider is asked now; False if that was noted before."""
    return tx.run(_SUBMIT, which=generation_id, now=now) == 1


def ended(tx: Transaction, done: Generation) -> bool:
    """Note the end of one that was open; False if it had ended."""
    return (
        tx.run(
            _END,
            which=done.id,
            status=done.status,
            completed_at=done.completed_at,
            result=None if done.result is None else packed(done.result),
            error=None if done.error is None else packed(done.error),
            files=packed(done.files),
            cost_usd=done.cost_usd,
            webhook_event=done.webhook_event,
            webhook_due_at=done.completed_at,
        )
        == 1
    )


def due(tx: Transaction) -> list[Generation]:
    """Webhooks to be sent, the most urgent first, at most 100."""
    return [_value(row) for row in tx.all(_DUE)]


def attempted(
    tx: Transaction, event: str, status: int | None, next_at: float | None, delivered_at: float | None
) -> None:
    """Note an attempt at a webhook that was due. status None: no answer. next_at None: there will be no other."""
    tx.run(_ATTEMPTED, which=event, webhook_status=status, webhook_due_at=next_at, webhook_delivered_at=delivered_at)


def told(tx: Transaction, most: int) -> list[Generation]:
    """Everybody's generations that have a webhook to send or sent, newest first."""
    return [_value(row) for row in tx.all(_TOLD, most=most)]


def tell_again(tx: Transaction, event: str, now: float) -> bool:
    """Make a webhook due once more; False if there is none of this id."""
    return tx.run(_AGAIN, which=event, webhook_due_at=now) == 1


def drop_expired(tx: Transaction, now: float) -> int:
    """Forget what expired; how many rows."""
    return tx.run(_DROP_UPLOADS, now=now) + tx.run(_DROP, now=now)


def kept_uploads(tx: Transaction) -> set[str]:
    """Ids of all uploads."""
    return {row.id for row in tx.all(_UPLOADS)}


def kept_artifacts(tx: Transaction) -> set[str]:
    """Ids of all artifacts."""
    return {file["artifact_id"] for row in tx.all(_FILES) for file in unpacked(row.files)}


def _value(row: Row) -> Generation:
    values = row._asdict()
    values["files"] = msgspec.json.decode(row.files, type=tuple[ImageFile, ...])
    for name in ("request", "result", "error"):
        values[name] = None if values[name] is None else unpacked(values[name])
    return Generation(**values)
