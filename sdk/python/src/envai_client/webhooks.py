"""Wiki webhooks: verify the raw bytes, then take each event once, in one transaction with the job it causes."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from time import time
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from .effects import Flow
from .errors import InvalidResponseError, SignatureError
from .keys import KeyRing

MAX_BODY = 1024 * 1024
TOLERANCE = 300.0
IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{1,255}\Z")
HEADERS = ("envai-webhook-id", "envai-webhook-timestamp", "envai-webhook-key-id", "envai-webhook-signature")
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]


class WebhookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What all three kinds share; `raw` is the verified JSON, unknown fields included."""

    schema_version: Literal["1"]
    event_id: Text
    event_type: str
    operation_id: Text
    workspace_id: Text
    occurred_at: str
    raw: dict[str, object] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.event_type} {self.event_id}>"


class FileProcessed(WebhookEvent, frozen=True, kw_only=True):
    file_id: str
    source_revision: Annotated[int, Meta(ge=1)]
    canonical_raw_path: str
    availability: Literal["raw"]


class FileDeleted(WebhookEvent, frozen=True, kw_only=True):
    file_id: str
    source_revision: Annotated[int, Meta(ge=1)]
    previous_canonical_raw_path: str | None
    lifecycle: Literal["deleted"]


class OperationEnded(WebhookEvent, frozen=True, kw_only=True):
    """The one logical end of an operation."""

    status: Literal["completed", "failed"]
    phases: dict[str, object]
    finished_at: str
    billing: dict[str, object]
    usage_cost: dict[str, object]

    def __post_init__(self) -> None:
        if not self.event_type.endswith("." + self.status):
            raise ValueError("status contradicts event_type")


KINDS: dict[str, type[WebhookEvent]] = {
    "wiki.inbox.file.processed": FileProcessed,
    "wiki.outbox.file.deleted": FileDeleted,
    **{f"wiki.{kind}.{end}": OperationEnded for kind in ("inbox", "outbox", "sync") for end in ("completed", "failed")},
}


def verify_webhook(
    keys: KeyRing,
    body: bytes,
    headers: Headers,
    workspace_id: str,
    now: float | None = None,
    timeout: float | None = None,
) -> Flow[WebhookEvent]:
    """The event of a delivery. Raises SignatureError unless the raw `body` is genuine, fresh and for `workspace_id`.

    `body` must be the bytes as received: a re-serialised body is another body.
    """
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError("the raw body bytes are verified, not parsed or decoded JSON")
    body = bytes(body)
    event_id, stamp, kid, signature = read_headers(headers)
    if len(body) > MAX_BODY:
        raise SignatureError("the webhook body is larger than 1 MiB")
    if abs((now if now is not None else time()) - int(stamp)) > TOLERANCE:
        raise SignatureError("the webhook attempt is older or newer than 300 seconds")
    digest = hashlib.sha256(body).hexdigest()
    yield from keys.verify(kid, signature, f"envai-webhook-v1\n{kid}\n{event_id}\n{stamp}\n{digest}".encode(), timeout)
    event = read_webhook(body)
    if event.event_id != event_id or event.workspace_id != workspace_id:
        raise SignatureError("the webhook names another event or workspace than its headers and receiver")
    return event


def read_headers(headers: Headers) -> list[str]:
    """The four signed header values, each present exactly once."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name.lower(), []).append(value)
    values = [found.get(name, []) for name in HEADERS]
    if any(len(lines) != 1 for lines in values):
        raise SignatureError("the webhook headers must be present exactly once")
    event_id, stamp, kid, signature = (lines[0] for lines in values)
    if not IDENTIFIER.match(event_id) or not IDENTIFIER.match(kid) or not re.match(r"[0-9]{1,12}\Z", stamp):
        raise SignatureError("the webhook headers are malformed")
    return [event_id, stamp, kid, signature]


def read_webhook(body: bytes) -> WebhookEvent:
    try:
        raw = msgspec.json.decode(body, type=dict[str, Any])
        kind = KINDS[raw["event_type"]]
        return msgspec.structs.replace(msgspec.convert(raw | {"raw": {}}, kind), raw=raw)
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, RecursionError):
        raise InvalidResponseError("a signed webhook is not a known event", raw=body) from None


Receipt: TypeAlias = Literal["accepted", "duplicate", "stale"]
INBOX = (
    "CREATE TABLE IF NOT EXISTS envai_webhook_receipts (workspace_id TEXT NOT NULL, event_id TEXT NOT NULL,"
    " received_at REAL NOT NULL, PRIMARY KEY (workspace_id, event_id)) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS envai_webhook_operations (workspace_id TEXT NOT NULL, operation_id TEXT NOT NULL,"
    " PRIMARY KEY (workspace_id, operation_id)) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS envai_webhook_files (workspace_id TEXT NOT NULL, file_id TEXT NOT NULL,"
    " source_revision INTEGER NOT NULL, deleted INTEGER NOT NULL, PRIMARY KEY (workspace_id, file_id))"
    " STRICT, WITHOUT ROWID",
)
ADVANCE = (
    "INSERT INTO envai_webhook_files VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
    " source_revision = excluded.source_revision, deleted = excluded.deleted"
    " WHERE excluded.source_revision > source_revision"
    " OR (excluded.source_revision = source_revision AND excluded.deleted > deleted)"
)


def receive_webhook(
    db: sqlite3.Connection, event: WebhookEvent, job: Callable[[sqlite3.Connection, WebhookEvent], None]
) -> Receipt:
    """Take a verified event once: its receipt and `job`'s rows commit together, or neither does.

    duplicate: this event was taken before. stale: a newer revision of the file, or its operation's end, was. In both
    cases `job` is not called. If `job` raises, nothing is kept and the next delivery tries again.
    """
    for statement in INBOX:
        db.execute(statement)
    db.commit()
    with db:
        row = (event.workspace_id, event.event_id, time())
        if not db.execute("INSERT INTO envai_webhook_receipts VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row).rowcount:
            return "duplicate"
        if not advances(db, event):
            return "stale"
        job(db, event)
    return "accepted"


def advances(db: sqlite3.Connection, event: WebhookEvent) -> bool:
    """Whether `event` moves its file or operation forward; records that it did. A late event revives nothing."""
    if isinstance(event, (FileProcessed, FileDeleted)):
        deleted = isinstance(event, FileDeleted)
        return db.execute(ADVANCE, (event.workspace_id, event.file_id, event.source_revision, deleted)).rowcount == 1
    row = (event.workspace_id, event.operation_id)
    return db.execute("INSERT INTO envai_webhook_operations VALUES (?, ?) ON CONFLICT DO NOTHING", row).rowcount == 1
