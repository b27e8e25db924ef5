"""Turns of one agent for a caller that waits for its answer, in a chat or on a journal that leaves nothing."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import Message
from crocevia.core.turn import Limits, derive_title, open_turn
from crocevia.core.turn import entries as e
from crocevia.core.turn.run_request import RunRequest
from crocevia.runtime.turns.agent_run import AgentRun, RunEvent, StepEnded
from crocevia.runtime.turns.chat_sessions import ChatSession, now_ms
from crocevia.runtime.turns.contexts import check_idle
from crocevia.runtime.turns.null_journal import NullJournal, unrecorded_session
from crocevia.runtime.turns.supervisor import Supervisor
from crocevia.runtime.turns.turn_setup import TurnSetup
from crocevia.storage import chats as chat_rows
from crocevia.storage import teams, workspaces
from crocevia.storage.agents import Agent
from crocevia.storage.chats import Chat
from crocevia.storage.database import Transaction

__all__ = ["AgentRun", "ChatPosition", "RunEvent", "RunRequest", "RunService", "RunSpec", "StepEnded"]

QUEUE_SECONDS: Final = 600.0  # for the turn that is open in the chat
_DEFAULT: Final = "default"


class ChatPosition(msgspec.Struct, frozen=True):
    """A chat. chat_id None: a new one. after: the turn that it must end with, else a new one takes its position; None:
    whatever was said in it since.
    """

    chat_id: str | None = None
    after: str | None = None


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run. input: what readers of the chat are shown of it. history: of a chat that is new.

    position None: nothing of it stays. tool_calls: how many of the agent's own. forbidden: names whose
    call fails the run.
    resumes: it goes on without its caller, in the next process too.
    """

    user_id: str
    agent: Agent
    workspace_id: str | None
    turn_id: str
    input: str
    request: RunRequest
    history: tuple[Message, ...] = ()
    position: ChatPosition | None = None
    tool_calls: int | None = None
    forbidden: frozenset[str] = frozenset()
    resumes: bool = False


class RunService:
    """One per server; belongs to one event loop."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._going: set[asyncio.Task[None]] = set()

    async def open(self, spec: RunSpec) -> AgentRun:
        """Begin a run; enter it at once. Where it runs in a chat, `run.chat_id` says in which.

        Raises GatewayError: DRAINING, UNAVAILABLE, INVALID_REQUEST (see `single_agent_setup`), CONFLICT when the
        chat's open turn does not end.
        """
        if self._supervisor.gateway.draining:
            raise GatewayError(Reason.DRAINING)
        if spec.position is None:
            return await self._open_unrecorded(spec)
        opening = asyncio.ensure_future(self._open_in_chat(spec, spec.position))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:  # nobody waits for it any more
            opening.add_done_callback(_abandon)
            raise

    async def adopt(self, chat_id: str, turn_id: str, caller_tools: frozenset[str]) -> AgentRun:
        """A run that an earlier process began: its batches come when it has ended. Raises GatewayError(NOT_FOUND)."""
        chat = await self._supervisor.control.database.read(lambda tx: chat_rows.find_any(tx, chat_id))
        if chat is None:
            raise GatewayError(Reason.NOT_FOUND)
        run = AgentRun(turn_id, caller_tools, alone=False, resumes=True)
        run.chat_id = chat_id
        run.driven_by(lambda: self._supervisor.drivers.get(chat_id), lambda: None)
        run.follows(self._keep(asyncio.get_running_loop().create_task(self._replay(chat, turn_id, run))))
        return run

    async def close(self) -> None:
        """Stop what leaves nothing behind. Idempotent."""
        for task in tuple(self._going):
            task.cancel()
        await asyncio.gather(*self._going, return_exceptions=True)

    # --- on a journal that leaves nothing --------------------------------------------------------------------

    async def _open_unrecorded(self, spec: RunSpec) -> AgentRun:
        supervisor, user_id = self._supervisor, spec.user_id
        setup = await supervisor.single_agent_setup(spec.agent, spec.workspace_id, spec.request, self._limits(spec))
        session = unrecorded_session(user_id, spec.workspace_id or "", spec.turn_id)
        session.fold.history = spec.history
        turn = session.fold.open()
        run = self._run(spec, alone=True)
        driver = supervisor.driver(_NO_JOURNAL, session, turn, setup, run)
        run.driven_by(lambda: driver, lambda: turn.terminal)
        open_turn(turn, spec.turn_id, setup.plan, spec.input, now_ms(), request=spec.request)
        run.follows(self._keep(asyncio.get_running_loop().create_task(driver.run())))
        return run

    def _keep(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        self._going.add(task)
        task.add_done_callback(self._going.discard)
        return task

    # --- in a chat -------------------------------------------------------------------------------------------

    async def _open_in_chat(self, spec: RunSpec, position: ChatPosition) -> AgentRun:
        setup = await self._supervisor.single_agent_setup(
            spec.agent, spec.workspace_id, spec.request, self._limits(spec)
        )
        clock = asyncio.get_running_loop().time
        patience = clock() + QUEUE_SECONDS
        while True:
            chat = await self._chat(spec, position)
            async with self._supervisor.sessions.lock(chat.id):
                session = await self._supervisor.sessions.enter(chat)
                if position.chat_id is not None and not _ends_with(session, position.after):
                    position = (
                        ChatPosition()
                    )  # something else was said there: this goes on elsewhere from what it knows
                    continue
                if session.fold.active is None:
                    return await self._begin(spec, position, session, setup)
                running = session.running
            if running is None or clock() >= patience:
                check_idle(session)
            else:
                await asyncio.wait([running], timeout=patience - clock())

    async def _begin(self, spec: RunSpec, position: ChatPosition, session: ChatSession, setup: TurnSetup) -> AgentRun:
        supervisor = self._supervisor
        try:
            if position.chat_id is None and spec.history:
                context = e.ContextReplaced(turn="", at=now_ms(), items=spec.history)
                await supervisor.log.append(session.fence, [context])
                session.fold.apply(context)
            turn, before = session.fold.open(), session.fold.totals
            run = self._run(spec, alone=False)
            run.driven_by(lambda: supervisor.drivers.get(session.chat.id), lambda: _terminal(session, spec.turn_id))
            run.chat_id = session.chat.id
            entries = open_turn(
                turn, spec.turn_id, setup.plan, spec.input, now_ms(), before=before, request=spec.request
            )
            await supervisor.begin(session, setup, entries, observer=run)
        except BaseException:
            supervisor.sessions.forget(
                session.chat.id
            )  # the fold is ahead of the journal, or nobody knows whether it is
            raise
        assert session.running is not None
        run.follows(session.running)
        return run

    async def _chat(self, spec: RunSpec, position: ChatPosition) -> Chat:
        control, user_id = self._supervisor.control, spec.user_id
        now = control.clock()

        def work(tx: Transaction) -> Chat:
            known = None if position.chat_id is None else chat_rows.find(tx, user_id, position.chat_id)
            if known is not None:
                return known
            workspace_id = spec.workspace_id or _workspace(tx, user_id, now)
            team_id = teams.implicit(tx, user_id, spec.agent.id, spec.agent.name, now)
            made = chat_rows.add(tx, user_id, workspace_id, team_id, now)
            title = derive_title(spec.input)
            chat_rows.set_title(tx, made.id, title, now)
            return msgspec.structs.replace(made, title=title)

        if position.chat_id is None:
            return await control.database.write(work)
        found = await control.database.read(lambda tx: chat_rows.find(tx, user_id, position.chat_id or ""))
        return found if found is not None else await control.database.write(work)

    async def _replay(self, chat: Chat, turn_id: str, run: AgentRun) -> None:
        """Wait for the end of a turn, and let the run hear it."""
        session = self._supervisor.sessions.find(chat.id)
        if session is not None and session.running is not None and not session.running.done():
            await asyncio.wait([session.running])
        entries = [entry for entry in await self._supervisor.log.replay(chat.id) if entry.turn == turn_id]
        terminal = next((entry for entry in entries if isinstance(entry, e.TERMINAL)), None)
        run.driven_by(lambda: None, lambda: terminal)
        run.replay([entry for entry in entries if isinstance(entry, e.ModelAnswered)])

    # --- both ------------------------------------------------------------------------------------------------

    def _run(self, spec: RunSpec, *, alone: bool) -> AgentRun:
        mine = [tool.name for tool in spec.request.tools]
        return AgentRun(spec.turn_id, mine, spec.forbidden, alone=alone, resumes=spec.resumes)

    def _limits(self, spec: RunSpec) -> Limits:
        # A word that was said cannot be taken back from a caller that is not a reader of the chat: no second try.
        return msgspec.structs.replace(self._supervisor.settings.limits, attempts=1, tool_calls=spec.tool_calls)


_NO_JOURNAL: Final = NullJournal()


def _ends_with(session: ChatSession, turn_id: str | None) -> bool:
    return turn_id is None or (
        session.fold.turn is not None and session.fold.turn.id == turn_id and session.fold.turn.ended
    )


def _terminal(session: ChatSession, turn_id: str) -> e.Terminal | None:
    turn = session.fold.turn
    return turn.terminal if turn is not None and turn.id == turn_id else None


def _workspace(tx: Transaction, user_id: str, now: float) -> str:
    """The user's first workspace, made if there is none."""
    found = workspaces.listed(tx, user_id, 1)
    return found[0].id if found else workspaces.add(tx, user_id, _DEFAULT, {}, now).id


def _abandon(opening: asyncio.Future[AgentRun]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abandon()
