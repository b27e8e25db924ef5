"""The chat kit on a team: what the kit posts becomes a message to a chat, a turn's entries become the kit's events.

The chat is a real one of the operator: it is listed among the chats, and its approvals wait in the panel too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.responses import JSONResponse, Response

from crocevia.core import json
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.texts import render
from crocevia.panel.kit_wire import KitRequest
from crocevia.panel.turn_events import TurnEvents
from crocevia.panel.turn_stream import TeamChat, TurnStream
from crocevia.panel.web import Page, PageRequest, PageResponse, read_body
from crocevia.runtime.control import chats
from crocevia.storage import meta, teams, workspaces
from crocevia.storage.database import Transaction

LARGEST: Final = 1 << 20
_STATUS: Final = {Code.NOT_FOUND: 404, Code.CONFLICT: 409, Code.DRAINING: 503, Code.UNAVAILABLE: 503}


async def handle(request: PageRequest) -> PageResponse:
    try:
        sent = json.decode(await read_body(request.http, LARGEST), KitRequest)
        return await _HANDLERS[sent.kind](request, sent)
    except GatewayError as error:
        said = {"code": error.code.value, "message": render(error.message, request.language)}
        return JSONResponse({"error": said}, _STATUS.get(error.code, 400))


async def _send_message(request: PageRequest, sent: KitRequest) -> Response:
    """Begin a turn in the conversation's chat, which is created if there is none yet."""
    chat = request.state.team_chats.get(_key(request, sent))
    if chat is None:
        chat = await _create_chat(request)
        request.state.team_chats.put(_key(request, sent), chat)
    turns = request.services.turns
    begin = (await turns.events(chat.user_id, chat.chat_id, 0)).bounds.head
    turn = await turns.send(chat.user_id, chat.chat_id, sent.text, key=f"panel:{sent.message_id[:100]}")
    if turn != chat.turn:  # otherwise it is the same message, sent again
        chat.follow(turn, sent.message_id, begin)
    return _stream(request, chat, 0)


async def _decide(request: PageRequest, sent: KitRequest) -> Response:
    """Approve or deny. An open stream goes on; without one, this answer takes its place."""
    chat = _chat(request, sent)
    approval = chat.approvals.get(sent.action)
    if approval is None:
        raise GatewayError(Reason.NOT_FOUND)
    await request.services.turns.decide(chat.user_id, chat.chat_id, approval, sent.approved, "")
    return Response(status_code=204) if chat.open_streams else _stream(request, chat, chat.sent_events)


async def _resume(request: PageRequest, sent: KitRequest) -> Response:
    chat = _chat(request, sent)
    if sent.message_id != chat.message_id:
        raise GatewayError(Reason.NOT_FOUND)
    return _stream(request, chat, sent.after)


async def _stop(request: PageRequest, sent: KitRequest) -> Response:
    chat = _chat(request, sent)
    await request.services.turns.cancel(chat.user_id, chat.chat_id)
    return Response(status_code=204)


async def _start_over(request: PageRequest, sent: KitRequest) -> Response:
    """The next message begins another chat. This one stays among the chats."""
    request.state.team_chats.drop(_key(request, sent))
    return Response(status_code=204)


def _stream(request: PageRequest, chat: TeamChat, after: int) -> TurnStream:
    question = request.t("playground.team_question")
    return TurnStream(request.services.turns, chat, TurnEvents(chat.turn, _team(request), question), after)


async def _create_chat(request: PageRequest) -> TeamChat:
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
    return TeamChat(made.id, user)


def _chat(request: PageRequest, sent: KitRequest) -> TeamChat:
    found = request.state.team_chats.get(_key(request, sent))
    if found is None:
        raise GatewayError(Reason.NOT_FOUND)
    return found


def _key(request: PageRequest, sent: KitRequest) -> tuple[str, str]:
    return request.signed_in.digest, f"{_team(request)}/{sent.conversation[:100]}"


def _team(request: PageRequest) -> str:
    return request.query.get("team", "")


_HANDLERS: Final[dict[str, Callable[[PageRequest, KitRequest], Awaitable[Response]]]] = {
    "messaggio": _send_message,
    "conferma": _decide,
    "riprendi": _resume,
    "ferma": _stop,
    "nuova": _start_over,
}
PAGES: Final = (Page(path="/panel/playground/team", post=handle),)
