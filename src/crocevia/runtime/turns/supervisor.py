"""Where turns run: every open one has a task here, after a crash too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from crocevia.core.errors import GatewayError
from crocevia.core.turn import Turn, TurnLimits, Unreadable
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.run_request import RunRequest
from crocevia.log import Effect, Fenced, Log, Unread
from crocevia.runtime.control.context import Control
from crocevia.runtime.files.workspace import MEMORY, WorkspaceFiles
from crocevia.runtime.gateway import Gateway
from crocevia.runtime.turns.chat_sessions import ChatSession, ChatSessions, RunObserver
from crocevia.runtime.turns.driver import Driver, Journal, WantHandler
from crocevia.runtime.turns.effects import CostCounter
from crocevia.runtime.turns.models import ModelRunner, TurnBudget
from crocevia.runtime.turns.settings import TurnSettings
from crocevia.runtime.turns.tool_runner import ToolRunner
from crocevia.runtime.turns.tools import Toolbox
from crocevia.runtime.turns.turn_setup import TurnSetup, single_agent_setup, team_setup
from crocevia.storage.agents import StoredAgent
from crocevia.storage.chats import Chat
from crocevia.storage.records import call_costs

OnFault = Callable[[str, BaseException], None]
"""Told of what should not have happened: where, and the exception, whose text may hold anything."""

MAX_REBUILDS: Final = 3  # of a turn whose driver broke
FIRST_BACKOFF: Final = 0.1  # seconds
MAX_BACKOFF: Final = 5.0


class Supervisor:
    """One per server; belongs to one event loop."""

    def __init__(
        self,
        control: Control,
        gateway: Gateway,
        log: Log,
        toolbox: Toolbox,
        files: WorkspaceFiles,
        settings: TurnSettings,
        on_fault: OnFault,
    ) -> None:
        self.on_idle: Callable[[str], None] = lambda chat_id: None
        """Told of each chat whose turn is no longer driven."""
        self.control = control
        self.log = log
        self.sessions = ChatSessions(log, settings.idle_chats)
        self.settings = settings
        self.drivers: dict[str, Driver] = {}
        """By chat."""
        self.gateway = gateway
        self._toolbox = toolbox
        self._files = files
        self._on_fault = on_fault

    async def team_setup(
        self, chat: Chat, *, title: bool, skip_unreachable: bool = False, request: RunRequest | None = None
    ) -> TurnSetup:
        """Who works in this chat now. Raises like `turn_setup.team_setup`."""
        memory = await asyncio.to_thread(self._memory, chat.workspace_id)
        return await team_setup(
            self.control,
            self._toolbox,
            chat,
            self.settings.limits,
            title=title,
            memory=memory,
            skip_unreachable=skip_unreachable,
            request=request,
        )

    async def single_agent_setup(
        self, agent: StoredAgent, workspace_id: str | None, request: RunRequest, limits: TurnLimits
    ) -> TurnSetup:
        """One agent that works alone. Raises like `turn_setup.single_agent_setup`."""
        memory = ""
        if agent.tools_enabled and workspace_id is not None:
            memory = await asyncio.to_thread(self._memory, workspace_id)
        return await single_agent_setup(self.control, self._toolbox, agent, limits, request, memory=memory)

    async def begin(
        self,
        session: ChatSession,
        setup: TurnSetup,
        entries: list[e.Entry],
        extra: Iterable[Effect] = (),
        observer: RunObserver | None = None,
    ) -> asyncio.Task[None]:
        """Write the entries that open the session's new turn, and drive it; hold the session's lock."""
        turn = session.fold.turn
        assert turn is not None
        session.costs = CostCounter()
        session.observer = observer
        driver = self.new_driver(self.log, session, turn, setup, observer)
        await driver.append(entries, extra)
        return self._drive(session, driver)

    async def resume(self, chat: Chat) -> None:
        """Go on with the chat's open turn in a new process. Raises ContextUnavailable, and what `append` raises."""
        async with self.sessions.lock(chat.id):
            session = await self.sessions.enter(chat)
            driver = await self._rebuild(session)
        if driver is not None:
            self._drive(session, driver)

    async def close(self) -> None:
        """Stop driving; open turns go on in the next process."""
        tasks = [session.running for session in self.sessions.driven() if session.running is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._toolbox.close()

    def _memory(self, workspace_id: str) -> str:
        try:
            return self._files.read(workspace_id, MEMORY)
        except GatewayError:
            return ""

    async def _setup_again(self, chat: Chat, turn: Turn) -> TurnSetup:
        """Today's prompts and tools for the plan of an open turn; an agent that is gone fails when it is called."""
        try:
            return await self.team_setup(chat, title=turn.plan.title, skip_unreachable=True, request=turn.request)
        except GatewayError:
            return TurnSetup(plan=turn.plan, agents={}, tools={}, derive_title=True)

    def new_driver(
        self, log: Journal, session: ChatSession, turn: Turn, setup: TurnSetup, observer: RunObserver | None = None
    ) -> Driver:
        """A driver for this open turn, not yet at work."""
        tools = ToolRunner(setup, self.control.signer, self.settings)
        models = ModelRunner(self.gateway, setup, self.settings, self.control, TurnBudget(turn), observer)
        handlers: dict[type, WantHandler] = {
            w.CallModel: models.call_model,
            w.Compact: models.compact,
            w.MakeTitle: models.make_title,
            w.RunTool: tools.run_tool,
            w.AskClient: tools.ask_client,
            w.StartChild: tools.start_child,
            w.End: tools.end,
        }
        return Driver(log, session, turn, handlers, self._on_fault)

    def _drive(self, session: ChatSession, driver: Driver) -> asyncio.Task[None]:
        self.drivers[session.chat.id] = driver
        work = self._run(session, driver)
        session.running = asyncio.get_running_loop().create_task(work, name=f"turn {driver.turn.id}")
        return session.running

    async def _run(self, session: ChatSession, driver: Driver | None) -> None:
        """Until the turn has ended. A driver that broke is replaced by one rebuilt from the journal."""
        broken, backoff = 0, FIRST_BACKOFF
        try:
            while True:
                try:
                    driver = driver or await self._replace_driver(session, give_up=broken >= MAX_REBUILDS)
                    if driver is not None:
                        await driver.run()
                    return
                except Unread:
                    driver = None
                except (Fenced, Unreadable) as error:
                    self._on_fault("turn", error)
                    self.sessions.forget(session.chat.id)
                    return
                except Exception as error:
                    self._on_fault("turn", error)
                    driver = None
                    broken += not isinstance(error, GatewayError)  # a store that is not there comes back
                    await asyncio.sleep(backoff)
                    backoff = min(backoff * 2, MAX_BACKOFF)
        finally:
            self.drivers.pop(session.chat.id, None)
            session.observer = None
            self.on_idle(session.chat.id)

    async def _replace_driver(self, session: ChatSession, *, give_up: bool) -> Driver | None:
        async with self.sessions.lock(session.chat.id):
            session.rebuild(await self.log.replay(session.chat.id))
            session.last_command = 0
            driver = await self._rebuild(session, resume=not give_up)
            if driver is not None:
                self.drivers[session.chat.id] = driver
                if give_up:
                    await driver.close_turn()
            return driver

    async def _rebuild(self, session: ChatSession, *, resume: bool = True) -> Driver | None:
        """A driver for the session's open turn that has read everything; None if no turn is open. Hold the lock."""
        turn = session.fold.active
        if turn is None:
            return None
        setup = await self._setup_again(session.chat, turn)
        driver = self.new_driver(self.log, session, turn, setup, session.observer)
        await driver.read_commands()
        under_way = [one.call_id for one in turn.instances.values() if one.inflight and one.call_id]
        costs = await self.control.database.read(lambda tx: call_costs(tx, under_way)) if under_way else {}
        await driver.recover(resume=resume and self.settings.on_restart == "resume", costs=costs)
        return driver
