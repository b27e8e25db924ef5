"""Chats of everybody; and one of them: a turn's events as steps, and a word to whoever is at work."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.panel import samples, words
from crocevia.panel.web import Answer, Ask, Crumb, Moved, Page, Shown
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
    mark: str


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
    mark: str
    samples: list[samples.Sample]
    error: Sentence | None = None


async def show(ask: Ask) -> Answer:
    only_open = ask.query.get("open") == "1"
    before = ask.query.get("before") or operator_view.LAST
    found = await ask.services.database.read(lambda tx: operator_view.chats(tx, before, PER_PAGE + 1, only_open))
    rows = found[:PER_PAGE]
    context = Listing(
        rows=rows,
        only_open=only_open,
        older=rows[-1].id if len(found) > PER_PAGE else None,
        first_page=before == operator_view.LAST,
        mark="/".join(f"{row.id}{row.state}{row.open_turn}" for row in rows),
    )
    return Shown(template="chats", context=context, title=words.say(ask.language, "nav.chats"), nav="chats")


async def show_one(ask: Ask) -> Answer:
    return await _one(ask)


async def cancel(ask: Ask) -> Answer:
    chat = await _find(ask)
    try:
        turn = await ask.services.turns.cancel(chat.user_id, chat.id)
    except GatewayError as error:
        return await _refused(ask, error)
    await _note(ask, "cancelled", chat.id, {"turn": (turn, None)})
    return Moved(f"/panel/chats/one?id={chat.id}&done=cancelled")


async def steer(ask: Ask) -> Answer:
    chat, text = await _find(ask), ask.form.get("text", "").strip()
    target = ask.form.get("to") or None
    try:
        if not 0 < len(text) <= LONGEST:
            raise GatewayError(Reason.STEER_LENGTH, most=LONGEST)
        turn = await ask.services.turns.steer(chat.user_id, chat.id, text, target)
    except GatewayError as error:
        return await _refused(ask, error)
    await _note(ask, "steered", chat.id, {"turn": (None, turn), "to": (None, target)})
    return Moved(f"/panel/chats/one?id={chat.id}&done=steered")


async def _refused(ask: Ask, error: GatewayError) -> Shown:
    if error.code not in (Code.CONFLICT, Code.INVALID_REQUEST):
        raise error
    shown = await _one(ask)
    assert isinstance(shown.context, One)
    return msgspec.structs.replace(
        shown, context=msgspec.structs.replace(shown.context, error=error.message), status=409
    )


async def _one(ask: Ask) -> Shown:
    chat = await _find(ask)
    turns = await ask.services.database.read(lambda tx: operator_view.turns(tx, chat.id, TURNS))
    asked = ask.query.get("turn")
    shown = next((turn.id for turn in turns if turn.id == asked), chat.open_turn or (turns[0].id if turns else None))
    line = operator_view.Timeline(steps=[], earlier=False, head=0)
    if shown is not None:
        line = await ask.services.database.read(lambda tx: operator_view.timeline(tx, chat.id, shown))
    steps = line.steps
    step = ask.query.get("step", "")
    context = One(
        chat=chat,
        turns=turns,
        turn=shown,
        steps=steps,
        step=min(max(int(step), 1), len(steps)) if step.isascii() and step.isdigit() and len(step) < 9 else len(steps),
        earlier=line.earlier,
        open=shown is not None and shown == chat.open_turn,
        deepest=DEEPEST,
        longest=LONGEST,
        members=line.members if shown == chat.open_turn else [],
        mark=f"{shown}/{line.head}/{chat.state}/{chat.waiting}",
        samples=samples.chat_events(ask.origin, chat.id),
    )
    return Shown(
        template="chat",
        context=context,
        title=chat.title or words.say(ask.language, "chats.untitled"),
        nav="chats",
        crumbs=(Crumb(words.say(ask.language, "nav.chats"), "/panel/chats"),),
    )


async def _find(ask: Ask) -> ChatRow:
    found = await ask.services.database.read(lambda tx: operator_view.chat(tx, ask.query.get("id", "")))
    if found is None:
        raise GatewayError(Reason.NOT_FOUND)
    return found


async def _note(ask: Ask, action: str, name: str, changes: dict[str, tuple[str | None, str | None]]) -> None:
    def work(tx: Transaction) -> None:
        audit.note(tx, ask.actor, action, "chats", name, changes)

    await ask.services.database.write(work)


PAGES: Final = (
    Page(path="/panel/chats", get=show),
    Page(path="/panel/chats/one", get=show_one),
    Page(path="/panel/chats/cancel", post=cancel),
    Page(path="/panel/chats/steer", post=steer),
)
