"""Attachments of a chat: kept as they came, checked against what they say they are."""

from __future__ import annotations

import asyncio
import io
import unicodedata
from pathlib import Path
from typing import IO, Final

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.core.limits import Quotas, spoken
from crocevia.documents.sniff import is_text
from crocevia.runtime.control import chats
from crocevia.runtime.control.context import Control, missing
from crocevia.runtime.files.blobs import Blobs, Received
from crocevia.storage import attachments as rows
from crocevia.storage.attachments import StoredAttachment
from crocevia.storage.database import Transaction

__all__ = ["Received", "StoredAttachment", "attach", "delete", "get", "listed", "open_file", "read", "upload"]

DAY: Final = 86_400.0
LOOSE_SECONDS: Final = DAY  # how long a file waits for its message
TOLD_SECONDS: Final = 30 * DAY  # how long a deleted one is still told of
FOR_EVER: Final = 253_402_300_799.0  # the last second of the year 9999

TYPES: Final = {
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".csv": "text/csv",
    ".pdf": "application/pdf",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
}


async def upload(
    control: Control, user_id: str, workspace_id: str, chat_id: str, key: str, name: str, received: Received
) -> StoredAttachment:
    """Keep what came, or give back what the same key has made of the same bytes. `received` is used up either way.

    Raises GatewayError: NOT_FOUND, INVALID_REQUEST (name, type, quota), CONFLICT for a key of another upload.
    """
    blobs = Blobs(control.home.files)
    try:
        small = received.size == len(received.head)  # nothing to read from the disk
        name, mime_type = _checked(name, received) if small else await asyncio.to_thread(_checked, name, received)
        now = control.clock()
        made = StoredAttachment(
            id=new_id("att"),
            workspace_id=workspace_id,
            chat_id=chat_id,
            user_id=user_id,
            name=name,
            mime_type=mime_type,
            size=received.size,
            sha256=received.sha256,
            idempotency_key=key,
            revision=1,
            created_at=now,
            expires_at=now + LOOSE_SECONDS,
        )
        await asyncio.to_thread(blobs.keep, "attachments", made.id, received)
        try:
            found = await control.database.write(lambda tx: _added(tx, made, control.limits))
        except BaseException:
            blobs.remove("attachments", made.id)
            raise
        if found.id != made.id:
            blobs.remove("attachments", made.id)
        return found
    finally:
        blobs.discard(received)


async def owned(control: Control, user_id: str, workspace_id: str, chat_id: str) -> None:
    """Raises GatewayError(NOT_FOUND) unless the chat is the user's: before a byte of an upload is read."""
    await chats.get(control, user_id, workspace_id, chat_id)


async def listed(control: Control, user_id: str, workspace_id: str, chat_id: str) -> list[StoredAttachment]:
    """What is there, oldest first. Raises GatewayError(NOT_FOUND)."""

    def work(tx: Transaction) -> list[StoredAttachment]:
        chats.owned(tx, user_id, workspace_id, chat_id)
        now = control.clock()
        return [found for found in rows.live(tx, chat_id, control.limits.chat_attachments) if found.expires_at > now]

    return await control.database.read(work)


async def get(control: Control, user_id: str, workspace_id: str, chat_id: str, attachment_id: str) -> StoredAttachment:
    """The attachment; one that was deleted says so. Raises GatewayError(NOT_FOUND)."""
    return await control.database.read(
        lambda tx: _found(tx, user_id, workspace_id, chat_id, attachment_id, control.clock())
    )


async def delete(
    control: Control, user_id: str, workspace_id: str, chat_id: str, attachment_id: str
) -> StoredAttachment:
    """Remove the bytes, also those that messages carried; the row tells so for a while. Raises NOT_FOUND."""
    now = control.clock()

    def work(tx: Transaction) -> StoredAttachment:
        _found(tx, user_id, workspace_id, chat_id, attachment_id, now)
        rows.mark_deleted(tx, attachment_id, now, now + TOLD_SECONDS)
        return _found(tx, user_id, workspace_id, chat_id, attachment_id, now)

    deleted = await control.database.write(work)
    await asyncio.to_thread(Blobs(control.home.files).remove, "attachments", attachment_id)
    return deleted


async def open_file(
    control: Control, user_id: str, workspace_id: str, chat_id: str, attachment_id: str
) -> tuple[StoredAttachment, IO[bytes]]:
    """The bytes as they came; the caller closes them. Raises GatewayError: NOT_FOUND, CONFLICT (deleted)."""
    found = await get(control, user_id, workspace_id, chat_id, attachment_id)
    if found.deleted_at is not None:
        raise GatewayError(Reason.ATTACHMENT_DELETED)
    return found, await asyncio.to_thread(Blobs(control.home.files).open, "attachments", found.id)


async def attach(control: Control, chat_id: str, ids: list[str]) -> list[StoredAttachment]:
    """What a message of the chat carries, in its order; from now on they stay. Raises GatewayError(INVALID_REQUEST)."""
    now = control.clock()

    def work(tx: Transaction) -> list[StoredAttachment]:
        found = []
        for index, which in enumerate(ids):
            attachment = rows.find(tx, chat_id, which)
            if attachment is None or attachment.deleted_at is not None or attachment.expires_at <= now:
                raise GatewayError(Reason.ATTACHMENT_MISSING, param=f"attachment_ids[{index}]")
            rows.mark_attached(tx, which, now, FOR_EVER)
            found.append(attachment)
        return found

    return await control.database.write(work)


async def read(control: Control, user_id: str, attachment_id: str) -> tuple[StoredAttachment, bytes] | None:
    """An attachment of any chat of the user, since contexts are copied between chats, with its bytes.

    None if it was deleted meanwhile. Raises GatewayError(UNAVAILABLE).
    """
    found = await control.database.read(lambda tx: rows.find_of_user(tx, user_id, attachment_id))
    if found is None or found.deleted_at is not None:
        return None

    def load() -> bytes:
        with Blobs(control.home.files).open("attachments", attachment_id) as file:
            return file.read()

    return found, await asyncio.to_thread(load)


async def drop_expired(control: Control) -> None:
    """Remove what has expired, and bytes without a row."""
    now, blobs = control.clock(), Blobs(control.home.files)
    before = await asyncio.to_thread(blobs.names, "attachments")
    while await control.database.write(lambda tx: rows.drop_expired(tx, now)):
        pass
    kept = await control.database.read(rows.kept)
    for name in before:
        if name not in kept:
            await asyncio.to_thread(blobs.remove, "attachments", name)


def _known(tx: Transaction, made: StoredAttachment) -> StoredAttachment | None:
    known = rows.by_key(tx, made.chat_id, made.idempotency_key)
    if known is not None and (known.sha256, known.name) != (made.sha256, made.name):
        raise GatewayError(Reason.IDEMPOTENCY_CONFLICT)
    return known


def _added(tx: Transaction, made: StoredAttachment, limits: Quotas) -> StoredAttachment:
    chats.owned(tx, made.user_id, made.workspace_id, made.chat_id)
    known = _known(tx, made)
    if known is not None:
        return known
    if rows.count(tx, made.chat_id) >= limits.chat_attachments:
        raise GatewayError(Reason.LIMIT_REACHED, param="file", limit=limits.chat_attachments)
    if rows.held(tx, made.user_id) + made.size > limits.user_attachment_bytes:
        raise GatewayError(Reason.ATTACHMENTS_QUOTA, param="file", limit=spoken(limits.user_attachment_bytes))
    rows.add(tx, made)
    return made


def _found(
    tx: Transaction, user_id: str, workspace_id: str, chat_id: str, attachment_id: str, now: float
) -> StoredAttachment:
    chats.owned(tx, user_id, workspace_id, chat_id)
    found = rows.find(tx, chat_id, attachment_id)
    if found is None or found.expires_at <= now:
        raise missing("attachment")
    return found


def _checked(name: str, received: Received) -> tuple[str, str]:
    """The name in one form, and the type that both it and the bytes say. Raises GatewayError(INVALID_REQUEST)."""
    # Invisible signs: some turn the rest of a name round.
    name = "".join(sign for sign in unicodedata.normalize("NFC", name) if unicodedata.category(sign) != "Cf")
    mime_type = TYPES.get(Path(name).suffix.lower())
    if mime_type is None:
        raise GatewayError(Reason.ATTACHMENT_TYPE, param="file", types=", ".join(TYPES))
    if not _is(mime_type, received):
        raise GatewayError(Reason.ATTACHMENT_DIFFERS, param="file", type=mime_type)
    return name, mime_type


def _is(mime_type: str, received: Received) -> bool:
    head = received.head
    if mime_type == "application/pdf":
        return b"%PDF-" in head[:1024]
    if mime_type == "audio/mpeg":
        return head[:3] == b"ID3" or (head[:1] == b"\xff" and head[1:2] != b"" and head[1] & 0xE6 == 0xE2)
    if mime_type == "video/mp4":
        return head[4:8] == b"ftyp"
    return received.size > 0 and _is_text(received)


def _is_text(received: Received) -> bool:
    small = received.size == len(received.head)
    with io.BytesIO(received.head) if small else received.aside.open("rb") as file:
        return is_text(iter(lambda: file.read(1 << 20), b""))
