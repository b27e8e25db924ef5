"""Where turns run: every open one has a task here, after a crash too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from crocevia.core.errors import GatewayError
from crocevia.core.turn import Limits, Turn, Unreadable
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.run_request import RunRequest
from crocevia.log import Effect, Fenced, Log, Unread
from crocevia.runtime.control.context import Control
from crocevia.runtime.files.workspace import MEMORY, WorkspaceFiles
from crocevia.runtime.gateway import Gateway
from crocevia.runtime.turns.budget import TurnBudget
from crocevia.runtime.turns.chat_sessions import ChatSession, ChatSessions
from crocevia.runtime.turns.driver import Driver, Journal, Perform
from crocevia.runtime.turns.effects import CostCounter
from crocevia.runtime.turns.hearing import RunObserver
from crocevia.runtime.turns.models import ModelRunner
from crocevia.runtime.turns.settings import TurnSettings
from crocevia.runtime.turns.tool_runner import ToolRunner
from crocevia.runtime.turns.tools import Toolbox
from crocevia.runtime.turns.turn_setup import TurnSetup, single_agent_setup, team_setup
from crocevia.storage.agents import Agent
from crocevia.storage.chats import Chat

Failed = Callable[[str, BaseException], None]
"""Told of what should not have happened: where, and the exception, whose text may be anybody's."""

TRIES: Final = 3  # rebuilding a turn whose driver broke
FIRST_REST: Final = 0.1
LAST_REST: Final = 5.0


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
        failed: Failed,
    ) -> None:
        self.control = control
        self.log = log
        self.sessions = ChatSessions(log, settings.sessions)
        self.settings = settings
        self.drivers: dict[str, Driver] = {}
        self.gateway = gateway
        self._toolbox = toolbox
        self._files = files
        self._failed = failed

    async def setup(
        self, chat: Chat, *, title: bool, without: bool = False, request: RunRequest | None = None
    ) -> TurnSetup:
        """Who plays in this chat now. Raises like `team_setup`."""
        memory = await asyncio.to_thread(self._memory, chat.workspace_id)
        limits = self.settings.limits
        return await team_setup(
            self.control, self._toolbox, chat, limits, title=title, memory=memory, without=without, request=request
        )

    async def single_agent_setup(
        self, agent: Agent, workspace_id: str | None, request: RunRequest, limits: Limits
    ) -> TurnSetup:
        """One agent that plays alone. Raises like `single_agent_setup`."""
        remembers = bool(agent.tools_enabled) and workspace_id is not None
        memory = await asyncio.to_thread(self._memory, workspace_id) if remembers and workspace_id else ""
        return await single_agent_setup(self.control, self._toolbox, agent, limits, request, memory=memory)

    async def begin(
        self,
        session: ChatSession,
        setup: TurnSetup,
        entries: list[e.Entry],
        extra: Iterable[Effect] = (),
        observer: RunObserver | None = None,
    ) -> None:
        """Write the entries that open the session's new turn, and drive it; reserve the session's lock."""
        turn = session.fold.turn
        assert turn is not None
        session.costs = CostCounter()
        session.observer = observer
        driver = self.driver(self.log, session, turn, setup, observer)
        await driver.append(entries, extra)
        self._drive(session, driver)

    async def resume(self, chat: Chat) -> None:
        """Go on with the chat's open turn in a new process. Raises ContextUnavailable, and what `append` raises."""
        async with self.sessions.lock(chat.id):
            session = await self.sessions.enter(chat)
            driver = await self._rebuilt(session)
        if driver is not None:
            self._drive(session, driver)

    async def close(self) -> None:
        """Stop driving; what is open goes on in the next process."""
        tasks = [session.running for session in self.sessions.busy() if session.running is not None]
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
        """The prompts and tools of today for the plan of then; who is gone fails when it is called."""
        try:
            return await self.setup(chat, title=turn.plan.title, without=True, request=turn.request)
        except GatewayError:
            return TurnSetup(plan=turn.plan, parts={}, built={}, derived=True)

    def driver(
        self, log: Journal, session: ChatSession, turn: Turn, setup: TurnSetup, observer: RunObserver | None = None
    ) -> Driver:
        """Somebody who drives this turn, not yet at work."""
        tools = ToolRunner(setup, self.control.signer, self.settings)
        models = ModelRunner(self.gateway, setup, self.settings, self.control, TurnBudget(turn), observer)
        perform: dict[type, Perform] = {
            w.CallModel: models.call_model,
            w.Compact: models.compact,
            w.MakeTitle: models.make_title,
            w.RunTool: tools.run_tool,
            w.AskClient: tools.ask_client,
            w.StartChild: tools.start_child,
            w.End: tools.end,
        }
        return Driver(log, session, turn, perform, self._failed)

    def _drive(self, session: ChatSession, driver: Driver) -> None:
        self.drivers[session.chat.id] = driver
        work = self._run(session, driver)
        session.running = asyncio.get_running_loop().create_task(work, name=f"turn {driver.turn.id}")

    async def _run(self, session: ChatSession, driver: Driver | None) -> None:
        """Until the turn has ended. A driver that broke is replaced by one that believes the journal."""
        broken, rest = 0, FIRST_REST
        try:
            while True:
                try:
                    driver = driver or await self._replaced(session, broken >= TRIES)
                    if driver is not None:
                        await driver.run()
                    return
                except Unread:
                    driver = None
                except (Fenced, Unreadable) as error:
                    self._failed("turn", error)
                    self.sessions.forget(session.chat.id)
                    return
                except Exception as error:
                    self._failed("turn", error)
                    driver = None
                    broken += not isinstance(error, GatewayError)  # a store that is not there comes back
                    await asyncio.sleep(rest)
                    rest = min(rest * 2, LAST_REST)
        finally:
            self.drivers.pop(session.chat.id, None)
            session.observer = None

    async def _replaced(self, session: ChatSession, hopeless: bool) -> Driver | None:
        async with self.sessions.lock(session.chat.id):
            session.take(await self.log.replay(session.chat.id))
            session.seen = 0
            driver = await self._rebuilt(session, resume=not hopeless)
            if driver is not None:
                self.drivers[session.chat.id] = driver
                if hopeless:
                    await driver.finish()
            return driver

    async def _rebuilt(self, session: ChatSession, *, resume: bool = True) -> Driver | None:
        """A driver for the session's open turn that has read everything; None if no turn is open. Hold the lock."""
        turn = session.fold.active
        if turn is None:
            return None
        driver = self.driver(self.log, session, turn, await self._setup_again(session.chat, turn), session.observer)
        await driver.read_commands()
        await driver.recover(resume=resume and self.settings.on_restart == "resume")
        return driver
