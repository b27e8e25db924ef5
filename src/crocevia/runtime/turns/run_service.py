"""Runs: turns of one agent for a caller that waits for its answer, in a chat or leaving nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import Message
from crocevia.core.turn import TurnLimits, derive_title, open_turn
from crocevia.core.turn import entries as e
from crocevia.core.turn.run_request import RunRequest
from crocevia.log import Appended, Command, Effect, Fence
from crocevia.runtime import session_turns
from crocevia.runtime.turns.agent_run import AgentRun, RunEvent, RunOutput, RunTurn, StepEnded, Work
from crocevia.runtime.turns.chat_sessions import ChatSession
from crocevia.runtime.turns.contexts import check_idle
from crocevia.runtime.turns.supervisor import Supervisor
from crocevia.runtime.turns.turn_setup import TurnSetup
from crocevia.storage import chats as chat_rows
from crocevia.storage import completions, teams, workspaces
from crocevia.storage.agents import StoredAgent
from crocevia.storage.chats import Chat
from crocevia.storage.database import Transaction

__all__ = ["AgentRun", "ChatPosition", "RunEvent", "RunRequest", "RunService", "RunSpec", "StepEnded", "Work"]

QUEUE_SECONDS: Final = 600.0  # for the turn that is open in the chat, while nobody waits at a connection
_DEFAULT_WORKSPACE: Final = "default"


class ChatPosition(msgspec.Struct, frozen=True):
    """Where in a chat a run belongs."""

    chat_id: str | None = None
    """None: a new chat."""
    after: str | None = None
    """The turn that the chat must end with, else the run goes to a new one; None: whatever was said in it since."""
    renewed: bool = False
    """The chat remembers what it should not: its context becomes the run's history."""


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run, and where."""

    user_id: str
    agent: StoredAgent
    workspace_id: str | None
    turn_id: str
    input: str
    """What readers of the chat are shown of the request."""
    request: RunRequest
    history: tuple[Message, ...] = ()
    """Of a chat that is new."""
    position: ChatPosition | None = None
    """None: nothing of the run stays."""
    tool_calls: int | None = None
    """How many calls of the agent's own tools are allowed."""
    forbidden: frozenset[str] = frozenset()
    """Names of tools whose call fails the run."""
    resumable: bool = False
    """It goes on without its caller, in the next process too."""


class RunService:
    """One per server; belongs to one event loop."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, spec: RunSpec) -> AgentRun:
        """Begin a run; enter it at once. Where it runs in a chat, `run.chat_id` says in which.

        Raises GatewayError: DRAINING, UNAVAILABLE, INVALID_REQUEST (see `single_agent_setup`), CONFLICT when the
        chat's open turn does not end.
        """
        self._supervisor.gateway.check_draining()
        if spec.position is None:
            return await self._open_unrecorded(spec)
        opening = asyncio.ensure_future(self._open_in_chat(spec, spec.position))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_abandon)
            raise

    async def chat_of(self, turn_id: str) -> str | None:
        """The chat in which a turn was begun, if it was."""
        return await self._supervisor.control.database.read(lambda tx: completions.chat_of(tx, turn_id))

    async def adopt(self, chat_id: str, turn_id: str, caller_tools: frozenset[str]) -> AgentRun:
        """A run that an earlier process began: its batches come when it has ended. Raises GatewayError(NOT_FOUND)."""
        chat = await self._supervisor.control.database.read(lambda tx: chat_rows.find_any(tx, chat_id))
        if chat is None:
            raise GatewayError(Reason.NOT_FOUND)
        output = RunOutput(caller_tools, sole_reader=False, resumable=True)
        terminals: list[e.Terminal] = []
        task = self._start(self._replay(chat, turn_id, output, terminals))
        turn = RunTurn(
            turn_id,
            driver=lambda: None if task.done() else self._supervisor.drivers.get(chat_id),
            terminal=lambda: terminals[0] if terminals else None,
        )
        return AgentRun(turn, output, task, chat_id)

    @property
    def is_busy(self) -> bool:
        """A run is under way."""
        return bool(self._tasks)

    async def close(self) -> None:
        """Stop what leaves nothing behind. Idempotent."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _open_unrecorded(self, spec: RunSpec) -> AgentRun:
        supervisor = self._supervisor
        setup = await supervisor.single_agent_setup(spec.agent, spec.workspace_id, spec.request, self._limits(spec))
        session = _unrecorded_session(spec)
        turn = session.fold.open()
        open_turn(turn, spec.turn_id, setup.plan, spec.input, session.clock.now(), request=spec.request)
        output = _output(spec, sole_reader=True)
        driver = supervisor.new_driver(_NULL_JOURNAL, session, turn, setup, output)
        run_turn = RunTurn(spec.turn_id, driver=lambda: driver, terminal=lambda: turn.terminal)
        return AgentRun(run_turn, output, self._start(driver.run()), None)

    async def _open_in_chat(self, spec: RunSpec, position: ChatPosition) -> AgentRun:
        limits = self._limits(spec)
        setup = await self._supervisor.single_agent_setup(spec.agent, spec.workspace_id, spec.request, limits)
        clock = asyncio.get_running_loop().time
        deadline = clock() + (QUEUE_SECONDS if spec.resumable else session_turns.PATIENCE_SECONDS)
        while True:
            chat = await self._chat(spec, position)
            async with self._supervisor.sessions.lock(chat.id):
                session = await self._supervisor.sessions.enter(chat)
                if position.chat_id is not None and not _ends_with(session, position.after):
                    position = ChatPosition()  # something else was said there: this goes on elsewhere
                    continue
                if session.fold.active is None:
                    return await self._begin(spec, position, session, setup)
                running = session.running
            if running is None:
                check_idle(session)
            elif clock() >= deadline:
                raise session_turns.busy()
            else:
                await asyncio.wait([running], timeout=deadline - clock())

    async def _begin(self, spec: RunSpec, position: ChatPosition, session: ChatSession, setup: TurnSetup) -> AgentRun:
        supervisor, chat_id = self._supervisor, session.chat.id
        output = _output(spec, sole_reader=False)
        session.set_clock()
        try:
            renewed = position.renewed and session.fold.history != spec.history
            if renewed or (position.chat_id is None and spec.history):
                context = e.ContextReplaced(turn="", at=session.clock.now(), items=spec.history)
                await supervisor.log.append(session.fence, [context])
                session.fold.apply(context)
            turn, before = session.fold.open(), session.fold.totals
            entries = open_turn(
                turn, spec.turn_id, setup.plan, spec.input, session.clock.now(), before=before, request=spec.request
            )
            task = await supervisor.begin(session, setup, entries, observer=output)
        except BaseException:
            supervisor.sessions.forget(chat_id)  # the fold may be ahead of the journal
            raise
        run_turn = RunTurn(
            spec.turn_id,
            driver=lambda: supervisor.drivers.get(chat_id),
            terminal=lambda: _terminal(session, spec.turn_id),
        )
        return AgentRun(run_turn, output, task, chat_id)

    async def _chat(self, spec: RunSpec, position: ChatPosition) -> Chat:
        control, user_id = self._supervisor.control, spec.user_id
        now = control.clock()

        def work(tx: Transaction) -> Chat:
            known = None if position.chat_id is None else chat_rows.find(tx, user_id, position.chat_id)
            if known is not None:
                return known
            workspace_id = spec.workspace_id or _first_workspace(tx, user_id, now)
            team_id = teams.implicit(tx, user_id, spec.agent.id, spec.agent.name, now)
            chat = chat_rows.add(tx, user_id, workspace_id, team_id, now)
            title = derive_title(spec.input)
            chat_rows.set_title(tx, chat.id, title, now)
            return msgspec.structs.replace(chat, title=title)

        if position.chat_id is None:
            return await control.database.write(work)
        known = await control.database.read(lambda tx: chat_rows.find(tx, user_id, position.chat_id or ""))
        return known if known is not None else await control.database.write(work)

    async def _replay(self, chat: Chat, turn_id: str, output: RunOutput, terminals: list[e.Terminal]) -> None:
        """Wait for the end of a turn, and give its answers out."""
        session = self._supervisor.sessions.find(chat.id)
        if session is not None and session.is_driven and session.running is not None:
            await asyncio.wait([session.running])
        entries = [entry for entry in await self._supervisor.log.replay(chat.id) if entry.turn == turn_id]
        terminals += [entry for entry in entries if isinstance(entry, e.TERMINAL)]
        output.replay([entry for entry in entries if isinstance(entry, e.ModelAnswered)])

    def _limits(self, spec: RunSpec) -> TurnLimits:
        # What a caller that is no reader of the chat was given cannot be taken back: no second attempt.
        return msgspec.structs.replace(self._supervisor.settings.limits, attempts=1, tool_calls=spec.tool_calls)


class NullJournal:
    """A `driver.Journal` that leaves nothing behind: the turn knows what is appended, and nobody else does."""

    async def append(
        self, fence: Fence, entries: Sequence[e.Entry], effects: Sequence[Effect] = (), *, read_upto: int | None = None
    ) -> Appended:
        return _NOTHING_APPENDED

    async def commands(self, chat: str, after: int = 0) -> list[Command]:
        return []


_NULL_JOURNAL: Final = NullJournal()
_NO_FENCE: Final = Fence("", 0, "", 0, "")
_NOTHING_APPENDED: Final = Appended(1, 0, "")


def _unrecorded_session(spec: RunSpec) -> ChatSession:
    """A chat that exists only here."""
    chat = Chat(
        id=spec.turn_id,
        workspace_id=spec.workspace_id or "",
        user_id=spec.user_id,
        team_id="",
        title=None,
        created_at=0,
        updated_at=0,
    )
    session = ChatSession(chat, _NO_FENCE, [])
    session.fold.history = spec.history
    return session


def _output(spec: RunSpec, *, sole_reader: bool) -> RunOutput:
    caller_tools = [tool.name for tool in spec.request.tools]
    return RunOutput(caller_tools, spec.forbidden, sole_reader=sole_reader, resumable=spec.resumable)


def _ends_with(session: ChatSession, turn_id: str | None) -> bool:
    turn = session.fold.turn
    return turn_id is None or (turn is not None and turn.id == turn_id and turn.ended)


def _terminal(session: ChatSession, turn_id: str) -> e.Terminal | None:
    turn = session.fold.turn
    return turn.terminal if turn is not None and turn.id == turn_id else None


def _first_workspace(tx: Transaction, user_id: str, now: float) -> str:
    """The user's first workspace, made if there is none."""
    known = workspaces.listed(tx, user_id, 1)
    return known[0].id if known else workspaces.add(tx, user_id, _DEFAULT_WORKSPACE, {}, now).id


def _abandon(opening: asyncio.Future[AgentRun]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abandon()
