"""Attachments of a chat."""

from __future__ import annotations

import asyncio
import re
from typing import Final

from crocevia.asgi.body import UPLOAD_SECONDS
from crocevia.asgi.fields import read_query
from crocevia.asgi.http import Operation, Response, Stream, data
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.atp.caller import Request, Rule
from crocevia.doors.atp.delivery import attachment as as_file
from crocevia.doors.atp.delivery import deliver
from crocevia.doors.atp.form import FileForm
from crocevia.doors.atp.wire import attachments as wire
from crocevia.runtime.control import chat_attachments as attachments
from crocevia.runtime.control import uploads

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
    await attachments.owned(request.caller.control, *_chat(request))
    form = FileForm(request, request.caller.control.limits.attachment_bytes)
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            received = await uploads.receive(request.caller.control, form.pieces())
    except TimeoutError:
        raise GatewayError(Reason.BODY_TOO_SLOW, seconds=int(UPLOAD_SECONDS)) from None
    made = await attachments.upload(request.caller.control, *_chat(request), key, form.name, received)
    return data(wire.attachment(made), 202)


async def listed(request: Request) -> Response:
    found = await attachments.listed(request.caller.control, *_chat(request))
    return data(wire.ChatAttachments(attachments=[wire.attachment(item) for item in found]))


async def get(request: Request) -> Response:
    found = await attachments.get(request.caller.control, *_chat(request), request.params["attachment_id"])
    return data(wire.attachment(found))


async def delete(request: Request) -> Response:
    deleted = await attachments.delete(request.caller.control, *_chat(request), request.params["attachment_id"])
    return data(wire.attachment(deleted), 202)


async def retry(request: Request) -> Response:
    _key(request)
    await attachments.get(request.caller.control, *_chat(request), request.params["attachment_id"])
    raise GatewayError(Reason.ATTACHMENT_RETRY_NOT_PERMITTED)


async def download(request: Request) -> Stream:
    kind = read_query(request, wire.DownloadQuery).kind
    which = request.params["attachment_id"]
    if kind == "derived":
        await attachments.get(request.caller.control, *_chat(request), which)
        raise GatewayError(Reason.ATTACHMENT_NATIVE)
    found, file = await attachments.open_file(request.caller.control, *_chat(request), which)
    return deliver(file, as_file(found.name, found.mime_type, found.size), found.size)


OPERATIONS = (
    Operation(
        "uploadChatAttachment",
        "POST",
        _CHAT,
        upload,
        "Keep a .md, .txt, .csv, .pdf, .mp3 or .mp4 file (by default at most 32 MB) for a message, for a day.",
        result=wire.ChatAttachment,
        wrapped=True,
        status=202,
        rule=Rule.CONTRACT_3,
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
        result=wire.ChatAttachments,
        wrapped=True,
        rule=Rule.CONTRACT_3,
    ),
    Operation(
        "getChatAttachment",
        "GET",
        _ONE,
        get,
        "One file of a chat; one that was deleted says so for a while.",
        result=wire.ChatAttachment,
        wrapped=True,
        rule=Rule.CONTRACT_3,
    ),
    Operation(
        "deleteChatAttachment",
        "DELETE",
        _ONE,
        delete,
        "Delete the bytes of a file, also where messages carried it.",
        result=wire.ChatAttachment,
        wrapped=True,
        status=202,
        rule=Rule.CONTRACT_3,
    ),
    Operation(
        "retryChatAttachment",
        "POST",
        f"{_ONE}/retry",
        retry,
        "Always refused: files are kept as they come, so there is no conversion to retry.",
        result=wire.ChatAttachment,
        wrapped=True,
        status=202,
        rule=Rule.CONTRACT_3,
        headers=_KEYED,
        refuses=(409,),
    ),
    Operation(
        "downloadChatAttachment",
        "GET",
        f"{_ONE}/download",
        download,
        "The bytes of a file as they came.",
        rule=Rule.CONTRACT_3,
        query=wire.DownloadQuery,
        produces="application/octet-stream",
        refuses=(409,),
    ),
)
