"""Chats of everybody; and one of them: a turn's events as steps, and a word to whoever is at work."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.panel import samples
from crocevia.panel.web import Breadcrumb, Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.runtime.control import audit, operator_view
from crocevia.runtime.control.operator_view import ChatRow, Member, Step, TurnRow
from crocevia.storage.database import Transaction

PER_PAGE: Final = 50
TURNS: Final = 50
DEEPEST: Final = 6  # levels that are indented
LONGEST: Final = 10_000  # characters of a word to an agent


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """older: the id that the next page starts below. mark: another one whenever something changed."""

    rows: list[ChatRow]
    only_open: bool
    older: str | None
    first_page: bool
    etag: str


class One(msgspec.Struct, frozen=True, kw_only=True):
    """turn: the one that is shown. step: how many of its steps are. earlier: steps that are not here. members: who can
    be told something beside the agent that leads.
    """

    chat: ChatRow
    turns: list[TurnRow]
    turn: str | None
    steps: list[Step]
    step: int
    earlier: bool
    open: bool
    deepest: int
    longest: int
    members: list[Member]
    etag: str
    samples: list[samples.Sample]
    error: Sentence | None = None


async def show(request: PageRequest) -> PageResponse:
    only_open = request.query.get("open") == "1"
    before = request.query.get("before") or operator_view.LAST
    found = await request.services.database.read(lambda tx: operator_view.chats(tx, before, PER_PAGE + 1, only_open))
    rows = found[:PER_PAGE]
    context = Listing(
        rows=rows,
        only_open=only_open,
        older=rows[-1].id if len(found) > PER_PAGE else None,
        first_page=before == operator_view.LAST,
        etag="/".join(f"{row.id}{row.state}{row.open_turn}" for row in rows),
    )
    return PageView(template="chats", context=context, title=request.t("nav.chats"), nav="chats")


async def show_one(request: PageRequest) -> PageResponse:
    return await _one(request)


async def cancel(request: PageRequest) -> PageResponse:
    chat = await _find(request)
    try:
        turn = await request.services.turns.cancel(chat.user_id, chat.id)
    except GatewayError as error:
        return await _refused(request, error)
    await _note(request, "cancelled", chat.id, {"turn": (turn, None)})
    return Redirect(f"/panel/chats/one?id={chat.id}&done=cancelled")


async def steer(request: PageRequest) -> PageResponse:
    chat, text = await _find(request), request.form.get("text", "").strip()
    target = request.form.get("to") or None
    try:
        if not 0 < len(text) <= LONGEST:
            raise GatewayError(Reason.STEER_LENGTH, most=LONGEST)
        turn = await request.services.turns.steer(chat.user_id, chat.id, text, target)
    except GatewayError as error:
        return await _refused(request, error)
    await _note(request, "steered", chat.id, {"turn": (None, turn), "to": (None, target)})
    return Redirect(f"/panel/chats/one?id={chat.id}&done=steered")


async def _refused(request: PageRequest, error: GatewayError) -> PageView:
    if error.code not in (Code.CONFLICT, Code.INVALID_REQUEST):
        raise error
    view = await _one(request)
    assert isinstance(view.context, One)
    return msgspec.structs.replace(view, context=msgspec.structs.replace(view.context, error=error.message), status=409)


async def _one(request: PageRequest) -> PageView:
    chat = await _find(request)
    turns = await request.services.database.read(lambda tx: operator_view.turns(tx, chat.id, TURNS))
    asked = request.query.get("turn")
    view = next((turn.id for turn in turns if turn.id == asked), chat.open_turn or (turns[0].id if turns else None))
    line = operator_view.Timeline(steps=[], earlier=False, head=0)
    if view is not None:
        line = await request.services.database.read(lambda tx: operator_view.timeline(tx, chat.id, view))
    steps = line.steps
    step = request.query.get("step", "")
    context = One(
        chat=chat,
        turns=turns,
        turn=view,
        steps=steps,
        step=min(max(int(step), 1), len(steps)) if step.isascii() and step.isdigit() and len(step) < 9 else len(steps),
        earlier=line.earlier,
        open=view is not None and view == chat.open_turn,
        deepest=DEEPEST,
        longest=LONGEST,
        members=line.members if view == chat.open_turn else [],
        etag=f"{view}/{line.head}/{chat.state}/{chat.waiting}",
        samples=samples.chat_events(request.origin, chat.id),
    )
    return PageView(
        template="chat",
        context=context,
        title=chat.title or request.t("chats.untitled"),
        nav="chats",
        breadcrumbs=(Breadcrumb(request.t("nav.chats"), "/panel/chats"),),
    )


async def _find(request: PageRequest) -> ChatRow:
    found = await request.services.database.read(lambda tx: operator_view.chat(tx, request.query.get("id", "")))
    if found is None:
        raise GatewayError(Reason.NOT_FOUND)
    return found


async def _note(
    request: PageRequest, action: str, name: str, changes: dict[str, tuple[str | None, str | None]]
) -> None:
    def work(tx: Transaction) -> None:
        audit.note(tx, request.actor, action, "chats", name, changes)

    await request.services.database.write(work)


PAGES: Final = (
    Page(path="/panel/chats", get=show),
    Page(path="/panel/chats/one", get=show_one),
    Page(path="/panel/chats/cancel", post=cancel),
    Page(path="/panel/chats/steer", post=steer),
)
