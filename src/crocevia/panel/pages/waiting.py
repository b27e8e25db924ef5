"""The waiting room: what turns wait for from outside, the most urgent first. An answer here counts like the app's."""

from __future__ import annotations

import hashlib
import time
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.panel import words
from crocevia.panel.web import Answer, Ask, Moved, Page, Shown
from crocevia.runtime.control import audit, operator_view
from crocevia.runtime.control.operator_view import Request
from crocevia.storage.database import Transaction

LONGEST: Final = 1 << 20  # characters of a tool's output
LONGEST_REASON: Final = 1000


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """now: Unix seconds, to say how long is left. mark: another one whenever something changed."""

    rows: list[Request]
    now: float
    mark: str
    error: Sentence | None = None


async def show(ask: Ask) -> Answer:
    return await _room(ask)


async def decide(ask: Ask) -> Answer:
    verdict = ask.form.get("verdict")
    reason = ask.form.get("reason", "").strip()[:LONGEST_REASON]
    try:
        if verdict not in ("approve", "deny"):
            raise GatewayError(Reason.INVALID_REQUEST)
        chat = await _chat(ask)
        approve = verdict == "approve"
        await ask.services.turns.decide(chat.user_id, chat.id, ask.query.get("id", ""), approve, reason)
    except GatewayError as error:
        return await _refused(ask, error)
    action = "approved" if approve else "denied"
    await _note(ask, action, chat.id)
    return Moved(f"/panel/waiting?done={action}")


async def answer(ask: Ask) -> Answer:
    output, is_error = ask.form.get("output", ""), ask.form.get("is_error") == "on"
    try:
        if len(output) > LONGEST:
            raise GatewayError(Reason.OUTPUT_LONG, most=LONGEST)
        chat = await _chat(ask)
        await ask.services.turns.submit_output(chat.user_id, chat.id, ask.query.get("id", ""), output, is_error)
    except GatewayError as error:
        return await _refused(ask, error)
    await _note(ask, "answered", chat.id)
    return Moved("/panel/waiting?done=answered")


async def _chat(ask: Ask) -> operator_view.ChatRow:
    found = await ask.services.database.read(lambda tx: operator_view.chat(tx, ask.query.get("chat", "")))
    if found is None:
        raise GatewayError(Reason.NOT_FOUND)
    return found


async def _refused(ask: Ask, error: GatewayError) -> Shown:
    """Too late, or answered elsewhere: the room as it is now, and why."""
    if error.code not in (Code.CONFLICT, Code.INVALID_REQUEST, Code.NOT_FOUND):
        raise error
    shown = await _room(ask)
    assert isinstance(shown.context, Context)
    context = msgspec.structs.replace(shown.context, error=error.message)
    status = {Code.CONFLICT: 409, Code.NOT_FOUND: 404}.get(error.code, 422)
    return msgspec.structs.replace(shown, context=context, status=status)


async def _room(ask: Ask) -> Shown:
    now = time.time()
    rows = await ask.services.database.read(lambda tx: operator_view.requests(tx, now))
    mark = hashlib.sha256("/".join(row.id for row in rows).encode()).hexdigest()[:16]
    context = Context(rows=rows, now=now, mark=mark)
    return Shown(template="waiting", context=context, title=words.say(ask.language, "nav.waiting"), nav="waiting")


async def _note(ask: Ask, action: str, chat_id: str) -> None:
    which = ask.query.get("id", "")

    def work(tx: Transaction) -> None:
        audit.note(tx, ask.actor, action, "chats", chat_id, {"id": (None, which)})

    await ask.services.database.write(work)


PAGES: Final = (
    Page(path="/panel/waiting", get=show),
    Page(path="/panel/waiting/decide", post=decide),
    Page(path="/panel/waiting/answer", post=answer),
)
