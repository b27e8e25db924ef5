"""The waiting room: what turns wait for from outside, the most urgent first. An answer here counts like the app's."""

from __future__ import annotations

import hashlib
import time
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.runtime.control import audit, operator_view
from crocevia.runtime.control.operator_view import Request
from crocevia.storage.database import Transaction

LONGEST: Final = 1 << 20  # characters of a tool's output
LONGEST_REASON: Final = 1000


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """now: Unix seconds, to say how long is left. mark: another one whenever something changed."""

    rows: list[Request]
    now: float
    etag: str
    error: Sentence | None = None


async def show(request: PageRequest) -> PageResponse:
    return await _room(request)


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
    await _note(request, action, chat.id)
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
    await _note(request, "answered", chat.id)
    return Redirect("/panel/waiting?done=answered")


async def _chat(request: PageRequest) -> operator_view.ChatRow:
    found = await request.services.database.read(lambda tx: operator_view.chat(tx, request.query.get("chat", "")))
    if found is None:
        raise GatewayError(Reason.NOT_FOUND)
    return found


async def _refused(request: PageRequest, error: GatewayError) -> PageView:
    """Too late, or answered elsewhere: the room as it is now, and why."""
    if error.code not in (Code.CONFLICT, Code.INVALID_REQUEST, Code.NOT_FOUND):
        raise error
    view = await _room(request)
    assert isinstance(view.context, Context)
    context = msgspec.structs.replace(view.context, error=error.message)
    status = {Code.CONFLICT: 409, Code.NOT_FOUND: 404}.get(error.code, 422)
    return msgspec.structs.replace(view, context=context, status=status)


async def _room(request: PageRequest) -> PageView:
    now = time.time()
    rows = await request.services.database.read(lambda tx: operator_view.requests(tx, now))
    etag = hashlib.sha256("/".join(row.id for row in rows).encode()).hexdigest()[:16]
    context = Context(rows=rows, now=now, etag=etag)
    return PageView(template="waiting", context=context, title=request.t("nav.waiting"), nav="waiting")


async def _note(request: PageRequest, action: str, chat_id: str) -> None:
    which = request.query.get("id", "")

    def work(tx: Transaction) -> None:
        audit.note(tx, request.actor, action, "chats", chat_id, {"id": (None, which)})

    await request.services.database.write(work)


PAGES: Final = (
    Page(path="/panel/waiting", get=show),
    Page(path="/panel/waiting/decide", post=decide),
    Page(path="/panel/waiting/answer", post=answer),
)
