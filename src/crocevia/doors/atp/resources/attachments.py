"""Attachments of a chat."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from typing import Final, Literal

import msgspec

from crocevia.asgi.body import UPLOAD_SECONDS
from crocevia.asgi.fields import read_query
from crocevia.asgi.http import Operation, Response, Stream, data
from crocevia.core.costs import usage_cost as cost_of
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.atp.caller import Request, VersionRule
from crocevia.doors.atp.delivery import attachment as as_file
from crocevia.doors.atp.delivery import deliver
from crocevia.doors.atp.form import FileForm
from crocevia.doors.atp.wire.common import Body, moment, moment_or_none
from crocevia.doors.atp.wire.costs import UsageCost, usage_cost
from crocevia.runtime.control import chat_attachments as control
from crocevia.runtime.control import uploads


class DownloadQuery(Body, frozen=True, kw_only=True):
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


def attachment(value: control.StoredAttachment) -> ChatAttachment:
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


def manifest(value: control.StoredAttachment) -> Manifest:
    """As the events show it."""
    return Manifest(
        attachment_id=value.id,
        original_name=value.name,
        revision=value.revision,
        sha256=value.sha256,
        bytes=value.size,
        conversion=AttachmentConversion(),
    )


_CHAT: Final = "/workspaces/{workspace_id}/chats/{chat_id}/attachments"
_ONE: Final = f"{_CHAT}/{{attachment_id}}"
_KEY: Final = re.compile(rb"[!-~]{1,255}")
_KEYED: Final = {"Idempotency-Key": ({"type": "string", "pattern": "^[!-~]{1,255}$"}, True)}


def _chat(request: Request) -> tuple[str, str, str]:
    return request.caller.user_id, request.params["workspace_id"], request.params["chat_id"]


def _key(request: Request) -> str:
    value = request.header(b"idempotency-key")
    if value is None or not _KEY.fullmatch(value):
        raise GatewayError(Reason.IDEMPOTENCY_KEY_SHAPE, param="Idempotency-Key")
    return value.decode("ascii")


async def upload(request: Request) -> Response:
    key = _key(request)
    await control.owned(request.caller.control, *_chat(request))
    form = FileForm(request, request.caller.control.limits.attachment_bytes)
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            received = await uploads.receive(request.caller.control, form.pieces())
    except TimeoutError:
        raise GatewayError(Reason.BODY_TOO_SLOW, seconds=int(UPLOAD_SECONDS)) from None
    made = await control.upload(request.caller.control, *_chat(request), key, form.name, received)
    return data(attachment(made), 202)


async def listed(request: Request) -> Response:
    found = await control.listed(request.caller.control, *_chat(request))
    return data(ChatAttachments(attachments=[attachment(item) for item in found]))


async def get(request: Request) -> Response:
    found = await control.get(request.caller.control, *_chat(request), request.params["attachment_id"])
    return data(attachment(found))


async def delete(request: Request) -> Response:
    deleted = await control.delete(request.caller.control, *_chat(request), request.params["attachment_id"])
    return data(attachment(deleted), 202)


async def retry(request: Request) -> Response:
    _key(request)
    await control.get(request.caller.control, *_chat(request), request.params["attachment_id"])
    raise GatewayError(Reason.ATTACHMENT_RETRY_NOT_PERMITTED)


async def download(request: Request) -> Stream:
    kind = read_query(request, DownloadQuery).kind
    which = request.params["attachment_id"]
    if kind == "derived":
        await control.get(request.caller.control, *_chat(request), which)
        raise GatewayError(Reason.ATTACHMENT_NATIVE)
    found, file = await control.open_file(request.caller.control, *_chat(request), which)
    return deliver(file, as_file(found.name, found.mime_type, found.size), found.size)


OPERATIONS = (
    Operation(
        "uploadChatAttachment",
        "POST",
        _CHAT,
        upload,
        "Keep a .md, .txt, .csv, .pdf, .mp3 or .mp4 file (by default at most 32 MB) for a message, for a day.",
        result=ChatAttachment,
        wrapped=True,
        status=202,
        rule=VersionRule.CONTRACT_3,
        upload=True,
        headers=_KEYED,
        refuses=(409,),
    ),
    Operation(
        "listChatAttachments",
        "GET",
        _CHAT,
        listed,
        "The files of a chat, by default at most 500, oldest first.",
        result=ChatAttachments,
        wrapped=True,
        rule=VersionRule.CONTRACT_3,
    ),
    Operation(
        "getChatAttachment",
        "GET",
        _ONE,
        get,
        "One file of a chat; one that was deleted says so for a while.",
        result=ChatAttachment,
        wrapped=True,
        rule=VersionRule.CONTRACT_3,
    ),
    Operation(
        "deleteChatAttachment",
        "DELETE",
        _ONE,
        delete,
        "Delete the bytes of a file, also where messages carried it.",
        result=ChatAttachment,
        wrapped=True,
        status=202,
        rule=VersionRule.CONTRACT_3,
    ),
    Operation(
        "retryChatAttachment",
        "POST",
        f"{_ONE}/retry",
        retry,
        "Always refused: files are kept as they come, so there is no conversion to retry.",
        result=ChatAttachment,
        wrapped=True,
        status=202,
        rule=VersionRule.CONTRACT_3,
        headers=_KEYED,
        refuses=(409,),
    ),
    Operation(
        "downloadChatAttachment",
        "GET",
        f"{_ONE}/download",
        download,
        "The bytes of a file as they came.",
        rule=VersionRule.CONTRACT_3,
        query=DownloadQuery,
        produces="application/octet-stream",
        refuses=(409,),
    ),
)
