"""Approvals and tool calls that turns wait for, the most urgent first. An answer here counts like the app's."""

from __future__ import annotations

import hashlib
import time
from http import HTTPStatus
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.panel.writing import note
from crocevia.runtime.control import operator_view
from crocevia.runtime.control.operator_view import WaitingRequest

LONGEST: Final = 1 << 20  # characters of a tool's output
LONGEST_REASON: Final = 1000

_REFUSED: Final = {
    Code.CONFLICT: HTTPStatus.CONFLICT,
    Code.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Code.INVALID_REQUEST: HTTPStatus.UNPROCESSABLE_ENTITY,
}


class Context(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[WaitingRequest]
    now: float
    """Unix seconds, to say how long is left."""
    etag: str
    """Changes whenever a row does."""
    error: Sentence | None = None


async def show(request: PageRequest) -> PageResponse:
    return await _list(request)


async def decide(request: PageRequest) -> PageResponse:
    verdict = request.form.get("verdict")
    reason = request.form.get("reason", "").strip()[:LONGEST_REASON]
    try:
        if verdict not in ("approve", "deny"):
            raise GatewayError(Reason.INVALID_REQUEST)
        chat = await _chat(request)
        approve = verdict == "approve"
        await request.services.turns.decide(chat.user_id, chat.id, request.query.get("id", ""), approve, reason)
    except GatewayError as error:
        return await _refused(request, error)
    action = "approved" if approve else "denied"
    await note(request, action, "chats", chat.id, {"id": (None, request.query.get("id", ""))})
    return Redirect(f"/panel/waiting?done={action}")


async def answer(request: PageRequest) -> PageResponse:
    output, is_error = request.form.get("output", ""), request.form.get("is_error") == "on"
    try:
        if len(output) > LONGEST:
            raise GatewayError(Reason.OUTPUT_LONG, most=LONGEST)
        chat = await _chat(request)
        await request.services.turns.submit_output(chat.user_id, chat.id, request.query.get("id", ""), output, is_error)
    except GatewayError as error:
        return await _refused(request, error)
    await note(request, "answered", "chats", chat.id, {"id": (None, request.query.get("id", ""))})
    return Redirect("/panel/waiting?done=answered")


async def _chat(request: PageRequest) -> operator_view.ChatRow:
    found = await request.services.database.read(lambda tx: operator_view.chat(tx, request.query.get("chat", "")))
    if found is None:
        raise GatewayError(Reason.NOT_FOUND)
    return found


async def _refused(request: PageRequest, error: GatewayError) -> PageView:
    """The list as it is now, and why the answer was refused: too late, or given elsewhere."""
    if error.code not in _REFUSED:
        raise error
    return await _list(request, error.message, _REFUSED[error.code])


async def _list(request: PageRequest, error: Sentence | None = None, status: HTTPStatus = HTTPStatus.OK) -> PageView:
    now = time.time()
    rows = await request.services.database.read(lambda tx: operator_view.requests(tx, now))
    etag = hashlib.sha256("/".join(row.id for row in rows).encode()).hexdigest()[:16]
    context = Context(rows=rows, now=now, etag=etag, error=error)
    return PageView(template="waiting", context=context, title=request.t("nav.waiting"), nav="waiting", status=status)


PAGES: Final = (
    Page(path="/panel/waiting", get=show),
    Page(path="/panel/waiting/decide", post=decide),
    Page(path="/panel/waiting/answer", post=answer),
)
