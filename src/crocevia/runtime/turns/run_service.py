"""Runs: turns of one agent for a caller that waits for its answer, in a chat or on a journal that leaves nothing."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError
from crocevia.core.messages import Message
from crocevia.core.turn import Limits, derive_title, open_turn
from crocevia.core.turn import entries as e
from crocevia.core.turn.brief import Brief
from crocevia.runtime.turns.agent_run import AgentRun, RunEvent, StepEnded
from crocevia.runtime.turns.casting import Cast
from crocevia.runtime.turns.contexts import check_idle
from crocevia.runtime.turns.null_journal import NullJournal, room_for
from crocevia.runtime.turns.open_chats import Room, now_ms
from crocevia.runtime.turns.supervisor import Supervisor
from crocevia.storage import chats as chat_rows
from crocevia.storage import teams, workspaces
from crocevia.storage.agents import Agent
from crocevia.storage.chats import Chat
from crocevia.storage.database import Transaction

__all__ = ["AgentRun", "Brief", "Order", "Place", "RunEvent", "Runs", "StepEnded"]

QUEUE_SECONDS: Final = 600.0  # for the turn that is open in the chat
_DEFAULT: Final = "default"


class Place(msgspec.Struct, frozen=True):
    """A chat. chat_id None: a new one. after: the turn that it must end with, else a new one takes its place; None:
    whatever was said in it since.
    """

    chat_id: str | None = None
    after: str | None = None


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run. input: what readers of the chat are shown of it. history: of a chat that is new.

    place None: nothing of it stays. tool_calls: how many of the agent's own. forbidden: names whose call fails the run.
    resumes: it goes on without its caller, in the next process too.
    """

    user_id: str
    agent: Agent
    workspace_id: str | None
    turn_id: str
    input: str
    brief: Brief
    history: tuple[Message, ...] = ()
    place: Place | None = None
    tool_calls: int | None = None
    forbidden: frozenset[str] = frozenset()
    resumes: bool = False


class Runs:
    """One per server; belongs to one event loop."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._going: set[asyncio.Task[None]] = set()

    async def open(self, order: Order) -> AgentRun:
        """Begin a run; enter it at once. Where it runs in a chat, `run.chat_id` says in which.

        Raises GatewayError: DRAINING, UNAVAILABLE, INVALID_REQUEST (see `casting.solo`), CONFLICT when the chat's
        open turn does not end.
        """
        if self._supervisor.gateway.draining:
            raise GatewayError(Code.DRAINING)
        if order.place is None:
            return await self._aside(order)
        opening = asyncio.ensure_future(self._seated(order, order.place))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:  # nobody waits for it any more
            opening.add_done_callback(_call_off)
            raise

    async def adopt(self, chat_id: str, turn_id: str, caller_tools: frozenset[str]) -> AgentRun:
        """A run that an earlier process began: its batches come when it has ended. Raises GatewayError(NOT_FOUND)."""
        chat = await self._supervisor.control.database.read(lambda tx: chat_rows.find_any(tx, chat_id))
        if chat is None:
            raise GatewayError(Code.NOT_FOUND)
        run = AgentRun(turn_id, caller_tools, alone=False, resumes=True)
        run.chat_id = chat_id
        run.driven_by(lambda: self._supervisor.drivers.get(chat_id), lambda: None)
        run.follows(self._keep(asyncio.get_running_loop().create_task(self._told(chat, turn_id, run))))
        return run

    async def close(self) -> None:
        """Stop what leaves nothing behind. Idempotent."""
        for task in tuple(self._going):
            task.cancel()
        await asyncio.gather(*self._going, return_exceptions=True)

    # --- on a journal that leaves nothing --------------------------------------------------------------------

    async def _aside(self, order: Order) -> AgentRun:
        supervisor, user_id = self._supervisor, order.user_id
        cast = await supervisor.solo(order.agent, order.workspace_id, order.brief, self._limits(order))
        room = room_for(user_id, order.workspace_id or "", order.turn_id)
        room.fold.history = order.history
        turn = room.fold.open()
        run = self._run(order, alone=True)
        driver = supervisor.driver(_NO_JOURNAL, room, turn, cast, run)
        run.driven_by(lambda: driver, lambda: turn.terminal)
        open_turn(turn, order.turn_id, cast.plan, order.input, now_ms(), brief=order.brief)
        run.follows(self._keep(asyncio.get_running_loop().create_task(driver.run())))
        return run

    def _keep(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        self._going.add(task)
        task.add_done_callback(self._going.discard)
        return task

    # --- in a chat -------------------------------------------------------------------------------------------

    async def _seated(self, order: Order, place: Place) -> AgentRun:
        cast = await self._supervisor.solo(order.agent, order.workspace_id, order.brief, self._limits(order))
        clock = asyncio.get_running_loop().time
        patience = clock() + QUEUE_SECONDS
        while True:
            chat = await self._chat(order, place)
            async with self._supervisor.rooms.lock(chat.id):
                room = await self._supervisor.rooms.enter(chat)
                if place.chat_id is not None and not _ends_with(room, place.after):
                    place = Place()  # something else was said there: this goes on elsewhere from what it knows
                    continue
                if room.fold.active is None:
                    return await self._begin(order, place, room, cast)
                running = room.running
            if running is None or clock() >= patience:
                check_idle(room)
            else:
                await asyncio.wait([running], timeout=patience - clock())

    async def _begin(self, order: Order, place: Place, room: Room, cast: Cast) -> AgentRun:
        supervisor = self._supervisor
        try:
            if place.chat_id is None and order.history:
                context = e.ContextReplaced(turn="", at=now_ms(), items=order.history)
                await supervisor.log.append(room.fence, [context])
                room.fold.apply(context)
            turn, before = room.fold.open(), room.fold.totals
            run = self._run(order, alone=False)
            run.driven_by(lambda: supervisor.drivers.get(room.chat.id), lambda: _terminal(room, order.turn_id))
            run.chat_id = room.chat.id
            entries = open_turn(turn, order.turn_id, cast.plan, order.input, now_ms(), before=before, brief=order.brief)
            await supervisor.begin(room, cast, entries, listener=run)
        except BaseException:
            supervisor.rooms.forget(room.chat.id)  # the fold is ahead of the journal, or nobody knows whether it is
            raise
        assert room.running is not None
        run.follows(room.running)
        return run

    async def _chat(self, order: Order, place: Place) -> Chat:
        control, user_id = self._supervisor.control, order.user_id
        now = control.clock()

        def work(tx: Transaction) -> Chat:
            known = None if place.chat_id is None else chat_rows.find(tx, user_id, place.chat_id)
            if known is not None:
                return known
            workspace_id = order.workspace_id or _workspace(tx, user_id, now)
            team_id = teams.implicit(tx, user_id, order.agent.id, order.agent.name, now)
            made = chat_rows.add(tx, user_id, workspace_id, team_id, now)
            title = derive_title(order.input)
            chat_rows.set_title(tx, made.id, title, now)
            return msgspec.structs.replace(made, title=title)

        if place.chat_id is None:
            return await control.database.write(work)
        found = await control.database.read(lambda tx: chat_rows.find(tx, user_id, place.chat_id or ""))
        return found if found is not None else await control.database.write(work)

    async def _told(self, chat: Chat, turn_id: str, run: AgentRun) -> None:
        """Wait for the end of a turn, and let the run hear it."""
        room = self._supervisor.rooms.find(chat.id)
        if room is not None and room.running is not None and not room.running.done():
            await asyncio.wait([room.running])
        entries = [entry for entry in await self._supervisor.log.replay(chat.id) if entry.turn == turn_id]
        terminal = next((entry for entry in entries if isinstance(entry, e.TERMINAL)), None)
        run.driven_by(lambda: None, lambda: terminal)
        run.replay([entry for entry in entries if isinstance(entry, e.ModelAnswered)])

    # --- both ------------------------------------------------------------------------------------------------

    def _run(self, order: Order, *, alone: bool) -> AgentRun:
        mine = [tool.name for tool in order.brief.tools]
        return AgentRun(order.turn_id, mine, order.forbidden, alone=alone, resumes=order.resumes)

    def _limits(self, order: Order) -> Limits:
        # A word that was said cannot be taken back from a caller that is not a reader of the chat: no second try.
        return msgspec.structs.replace(self._supervisor.settings.limits, attempts=1, tool_calls=order.tool_calls)


_NO_JOURNAL: Final = NullJournal()


def _ends_with(room: Room, turn_id: str | None) -> bool:
    return turn_id is None or (room.fold.turn is not None and room.fold.turn.id == turn_id and room.fold.turn.ended)


def _terminal(room: Room, turn_id: str) -> e.Terminal | None:
    turn = room.fold.turn
    return turn.terminal if turn is not None and turn.id == turn_id else None


def _workspace(tx: Transaction, user_id: str, now: float) -> str:
    """The user's first workspace, made if there is none."""
    found = workspaces.listed(tx, user_id, 1)
    return found[0].id if found else workspaces.add(tx, user_id, _DEFAULT, {}, now).id


def _call_off(opening: asyncio.Future[AgentRun]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().call_off()
