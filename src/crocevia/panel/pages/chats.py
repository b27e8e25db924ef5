"""All users' chats, and the page of one: a turn's events as steps, with steering and cancelling."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.panel import samples
from crocevia.panel.web import Breadcrumb, Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.panel.writing import note
from crocevia.runtime.control import operator_view
from crocevia.runtime.control.operator_view import ChatRow, Step, TeamInstance, TurnRow

PER_PAGE: Final = 50
TURNS: Final = 50
DEEPEST: Final = 6  # levels that are indented
LONGEST: Final = 10_000  # characters of a steering message


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[ChatRow]
    only_open: bool
    older: str | None
    """The id that the next page starts below."""
    first_page: bool
    etag: str
    """Changes whenever a row does."""


class One(msgspec.Struct, frozen=True, kw_only=True):
    chat: ChatRow
    turns: list[TurnRow]
    turn: str | None
    """The one that is shown."""
    steps: list[Step]
    step: int
    """How many of its steps are shown."""
    earlier: bool
    """Whether it has older steps that are not here."""
    open: bool
    deepest: int
    longest: int
    members: list[TeamInstance]
    """Agents that can be steered, besides the leading one."""
    etag: str
    """Changes whenever the turn goes on."""
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
    await note(request, "cancelled", "chats", chat.id, {"turn": (turn, None)})
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
    await note(request, "steered", "chats", chat.id, {"turn": (None, turn), "to": (None, target)})
    return Redirect(f"/panel/chats/one?id={chat.id}&done=steered")


async def _refused(request: PageRequest, error: GatewayError) -> PageView:
    if error.code not in (Code.CONFLICT, Code.INVALID_REQUEST):
        raise error
    return await _one(request, error.message)


async def _one(request: PageRequest, error: Sentence | None = None) -> PageView:
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
        error=error,
    )
    return PageView(
        template="chat",
        context=context,
        title=chat.title or request.t("chats.untitled"),
        nav="chats",
        breadcrumbs=(Breadcrumb(request.t("nav.chats"), "/panel/chats"),),
        status=HTTPStatus.OK if error is None else HTTPStatus.CONFLICT,
    )


async def _find(request: PageRequest) -> ChatRow:
    found = await request.services.database.read(lambda tx: operator_view.chat(tx, request.query.get("id", "")))
    if found is None:
        raise GatewayError(Reason.NOT_FOUND)
    return found


PAGES: Final = (
    Page(path="/panel/chats", get=show),
    Page(path="/panel/chats/one", get=show_one),
    Page(path="/panel/chats/cancel", post=cancel),
    Page(path="/panel/chats/steer", post=steer),
)
