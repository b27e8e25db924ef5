"""Attachments of chats on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from crocevia.core.costs import usage_cost as cost_of
from crocevia.doors.atp.wire.common import Request, moment, moment_or_none
from crocevia.doors.atp.wire.costs import UsageCost, usage_cost
from crocevia.runtime.control import chat_attachments as control


class DownloadQuery(Request, frozen=True, kw_only=True):
    kind: Literal["original", "derived"]


class AttachmentConversion(msgspec.Struct, frozen=True, kw_only=True):
    """Files are kept as they come: nothing is ever converted."""

    status: Literal["not_required"] = "not_required"
    error_code: None = None
    recoverable: bool = False
    next_retry_at: None = None
    retryable: bool = False


class ChatAttachment(msgspec.Struct, frozen=True, kw_only=True):
    attachment_id: str
    workspace_id: str
    chat_id: str
    original_name: str
    mime_type: str
    byte_size: int
    lifecycle: Literal["ready", "deleted"]
    revision: int
    conversion: AttachmentConversion
    derived: None
    expires_at: datetime
    attached_at: datetime | None
    usage_cost: UsageCost


class ChatAttachments(msgspec.Struct, frozen=True, kw_only=True):
    attachments: list[ChatAttachment]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What `turn.started` says of an attachment."""

    attachment_id: str
    original_name: str
    revision: int
    sha256: str
    bytes: int
    conversion: AttachmentConversion


def attachment(value: control.Attachment) -> ChatAttachment:
    """As the wire shows it."""
    free = cost_of({}, invocations=0, pending=0, closed=True, basis="none", as_of=value.created_at)
    return ChatAttachment(
        attachment_id=value.id,
        workspace_id=value.workspace_id,
        chat_id=value.chat_id,
        original_name=value.name,
        mime_type=value.mime_type,
        byte_size=value.size,
        lifecycle="ready" if value.deleted_at is None else "deleted",
        revision=value.revision,
        conversion=AttachmentConversion(),
        derived=None,
        expires_at=moment(value.expires_at),
        attached_at=moment_or_none(value.attached_at),
        usage_cost=usage_cost(free),
    )


def manifest(value: control.Attachment) -> Manifest:
    """As the events show it."""
    return Manifest(
        attachment_id=value.id,
        original_name=value.name,
        revision=value.revision,
        sha256=value.sha256,
        bytes=value.size,
        conversion=AttachmentConversion(),
    )
