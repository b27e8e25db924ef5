"""A chat's context between turns: forked into another chat, or restored."""

from __future__ import annotations

from collections.abc import Sequence

from crocevia.core.detailed_errors import TurnInProgress
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import is_id
from crocevia.core.messages import Message
from crocevia.core.turn import Totals, Turn, Unreadable
from crocevia.core.turn import entries as e
from crocevia.core.turn.calls import CallState
from crocevia.core.turn.questions import ApprovalState
from crocevia.log import Effect, Log
from crocevia.runtime.control import chats
from crocevia.runtime.turns import prompts
from crocevia.runtime.turns.chat_sessions import ChatSession, ContextUnavailable, now_ms
from crocevia.runtime.turns.effects import closed_unread
from crocevia.runtime.turns.supervisor import Supervisor
from crocevia.storage.chats import Chat


async def fork(supervisor: Supervisor, user_id: str, source_id: str, destination_id: str) -> None:
    """Give an empty chat of the same owner and workspace the whole context of this one.

    Raises GatewayError: NOT_FOUND, CONFLICT (`turn_in_progress`), INVALID_REQUEST (`invalid_fork_destination`).
    """
    source = await chats.find(supervisor.control, user_id, source_id)
    destination = await _destination(supervisor, source, destination_id)
    first, second = sorted((source_id, destination_id))
    async with supervisor.sessions.lock(first), supervisor.sessions.lock(second):
        origin = await supervisor.sessions.enter(source)
        check_idle(origin)
        target = await supervisor.sessions.enter(destination)
        if target.fold.turns or target.fold.history:
            raise _bad_destination()
        await _replace(supervisor, target, origin.fold.history)


async def restore(supervisor: Supervisor, user_id: str, chat_id: str, items: Sequence[tuple[str, str]]) -> None:
    """Replace a chat's context, also that of one whose journal cannot be read. items: (kind, content): `compacted`
    first, then `assistant`.

    Raises GatewayError: NOT_FOUND, CONFLICT (`turn_in_progress`), INVALID_REQUEST (`invalid_orchestrator_context`).
    """
    kinds = [kind for kind, _ in items]
    if kinds[:1] != ["compacted"] or any(kind != "assistant" for kind in kinds[1:]):
        raise GatewayError(Reason.INVALID_ORCHESTRATOR_CONTEXT, param="orchestrator_context")
    chat = await chats.find(supervisor.control, user_id, chat_id)
    context = tuple(prompts.restored(kind, content) for kind, content in items)
    async with supervisor.sessions.lock(chat_id):
        try:
            session = await supervisor.sessions.enter(chat)
        except ContextUnavailable:
            await _begin_anew(supervisor, chat, context)
            return
        check_idle(session)
        await _replace(supervisor, session, context)


def check_idle(session: ChatSession) -> None:
    """Raises TurnInProgress, which says what the turn waits for."""
    turn = session.fold.active
    if turn is not None:
        raise TurnInProgress(turn.id, _waiting_for(turn))


def _waiting_for(turn: Turn) -> str:
    if any(item.answer is ApprovalState.OPEN for item in turn.approvals.values()):
        return "approval"
    return "client_tool" if turn.open_calls(CallState.REQUESTED) else "nothing"


async def _replace(supervisor: Supervisor, session: ChatSession, context: tuple[Message, ...]) -> None:
    entry = e.ContextReplaced(turn="", at=now_ms(), items=context)
    try:
        await supervisor.log.append(session.fence, [entry])
        session.fold.apply(entry)
    except BaseException:
        supervisor.sessions.forget(session.chat.id)  # nobody knows whether it was written: read it again
        raise


async def _begin_anew(supervisor: Supervisor, chat: Chat, context: tuple[Message, ...]) -> None:
    """Let a journal that cannot be read go on with this context: what is older is not read any more.

    A turn that nobody can resume ends.
    """
    log, at = supervisor.log, now_ms()
    fence, bounds, totals = (
        await supervisor.sessions.fence(chat.id),
        await log.bounds(chat.id),
        await _totals(log, chat),
    )
    entries: list[e.Entry] = []
    effects: list[Effect] = []
    if bounds.turn is not None:
        unknown = Totals(cost_usd=None)
        totals += unknown
        words = "the history of this chat could not be read"
        ended = e.TurnFailed(
            turn=bounds.turn, at=at, usage=unknown, chat_usage=totals, code=Reason.CONTEXT_UNAVAILABLE, message=words
        )
        entries.append(ended)
        effects.append(closed_unread(ended))
    entries.append(e.ContextReplaced(turn="", at=at, items=context, totals=totals, title=chat.title))
    await log.append(fence, entries, effects)


async def _totals(log: Log, chat: Chat) -> Totals:
    """What the ends of turns say that can be read still; the cost is unknown if something after them cannot."""
    bounds = await log.bounds(chat.id)
    cursor, totals = bounds.first - 1, Totals(cost_usd=0.0 if bounds.first == 1 else None)
    while rows := await log.read(chat.id, cursor):
        cursor = rows[-1].seq
        for row in rows:
            try:
                entry = row.entry
            except Unreadable:
                totals += Totals(cost_usd=None)
            else:
                totals = entry.chat_usage if isinstance(entry, e.TERMINAL) else totals
    return totals


async def _destination(supervisor: Supervisor, source: Chat, destination_id: str) -> Chat:
    if not is_id(destination_id, "cht") or destination_id == source.id:
        raise _bad_destination()
    try:
        found = await chats.find(supervisor.control, source.user_id, destination_id)
    except GatewayError:
        raise _bad_destination() from None
    if found.workspace_id != source.workspace_id:
        raise _bad_destination()
    return found


def _bad_destination() -> GatewayError:
    return GatewayError(Reason.INVALID_FORK_DESTINATION, param="destination_chat_id")
