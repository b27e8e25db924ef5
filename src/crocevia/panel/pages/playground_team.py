"""The chat kit on a team: what the kit posts becomes a message to a chat, what the turn does becomes the kit's events.

The chat is a real one of the operator: it is among the chats, and what it asks for is in the waiting room too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec
from starlette.responses import JSONResponse, Response

from crocevia.core import json
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.texts import render
from crocevia.panel.turn_events import TurnEvents
from crocevia.panel.turn_stream import Talk, TurnStream
from crocevia.panel.web import Page, PageRequest, PageResponse, read_body
from crocevia.runtime.control import chats
from crocevia.storage import meta, teams, workspaces
from crocevia.storage.database import Transaction

LARGEST: Final = 1 << 20
_STATUS: Final = {Code.NOT_FOUND: 404, Code.CONFLICT: 409, Code.DRAINING: 503, Code.UNAVAILABLE: 503}


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """What the kit posts. dopo: events of this `turno` that it has."""

    tipo: Literal["messaggio", "conferma", "nuova", "riprendi", "ferma"]
    conversazione: str
    turno: str = ""
    testo: str = ""
    azione: str = ""
    esito: Literal["approvata", "negata"] = "negata"
    dopo: int = 0


async def chat(request: PageRequest) -> PageResponse:
    try:
        posted = json.decode(await read_body(request.http, LARGEST), Posted)
        return await _DO[posted.tipo](request, posted)
    except GatewayError as error:
        said = {"code": error.code.value, "message": render(error.message, request.language)}
        return JSONResponse({"error": said}, _STATUS.get(error.code, 400))


async def _ask(request: PageRequest, posted: Posted) -> Response:
    """A message: a turn of the conversation's chat, which is made if there is none yet."""
    talk = request.state.talks.get(_key(request, posted))
    if talk is None:
        talk = await _begin(request)
        request.state.talks.put(_key(request, posted), talk)
    turns = request.services.turns
    begin = (await turns.events(talk.user_id, talk.chat_id, 0)).bounds.head
    turn = await turns.send(talk.user_id, talk.chat_id, posted.testo, key=f"panel:{posted.turno[:100]}")
    if turn != talk.turn:  # else it is the same message, sent again
        talk.turn, talk.question, talk.begin, talk.sent, talk.approvals = turn, posted.turno, begin, 0, {}
    return _stream(request, talk, 0)


async def _decide(request: PageRequest, posted: Posted) -> Response:
    """A yes or a no. The stream that is open goes on; without one, this answer takes its place."""
    talk = _talk(request, posted)
    approval = talk.approvals.get(posted.azione)
    if approval is None:
        raise GatewayError(Reason.NOT_FOUND)
    await request.services.turns.decide(talk.user_id, talk.chat_id, approval, posted.esito == "approvata", "")
    return Response(status_code=204) if talk.readers else _stream(request, talk, talk.sent)


async def _resume(request: PageRequest, posted: Posted) -> Response:
    talk = _talk(request, posted)
    if posted.turno != talk.question:
        raise GatewayError(Reason.NOT_FOUND)
    return _stream(request, talk, posted.dopo)


async def _stop(request: PageRequest, posted: Posted) -> Response:
    talk = _talk(request, posted)
    await request.services.turns.cancel(talk.user_id, talk.chat_id)
    return Response(status_code=204)


async def _renew(request: PageRequest, posted: Posted) -> Response:
    """Another conversation from now on. The chat stays among the chats."""
    request.state.talks.drop(_key(request, posted))
    return Response(status_code=204)


def _stream(request: PageRequest, talk: Talk, after: int) -> TurnStream:
    question = request.t("playground.team_question")
    return TurnStream(request.services.turns, talk, TurnEvents(talk.turn, _team(request), question), after)


async def _begin(request: PageRequest) -> Talk:
    def find(tx: Transaction) -> tuple[str, str, str]:
        user = meta.get(tx, meta.OPERATOR)
        team = teams.find_named(tx, user, _team(request)) if user else None
        spaces = workspaces.listed(tx, user, 1) if user else []
        if user is None or team is None:
            raise GatewayError(Reason.NOT_FOUND)
        if not spaces:
            raise GatewayError(Reason.HOME_NOT_INITIALISED)
        return user, spaces[0].id, team

    user, workspace, team = await request.services.database.read(find)
    made = await chats.create(request.services.control, user, workspace, team)
    return Talk(made.id, user)


def _talk(request: PageRequest, posted: Posted) -> Talk:
    found = request.state.talks.get(_key(request, posted))
    if found is None:
        raise GatewayError(Reason.NOT_FOUND)
    return found


def _key(request: PageRequest, posted: Posted) -> tuple[str, str]:
    assert request.session is not None
    return request.session.digest, f"{_team(request)}/{posted.conversazione[:100]}"


def _team(request: PageRequest) -> str:
    return request.query.get("team", "")


_DO: Final[dict[str, Callable[[PageRequest, Posted], Awaitable[Response]]]] = {
    "messaggio": _ask,
    "conferma": _decide,
    "riprendi": _resume,
    "ferma": _stop,
    "nuova": _renew,
}
PAGES: Final = (Page(path="/panel/playground/team", post=chat),)
