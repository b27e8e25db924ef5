"""Where turns run: every open one has a task here, after a crash too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from crocevia.core.errors import GatewayError
from crocevia.core.turn import Limits, Turn, Unreadable
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.brief import Brief
from crocevia.log import Effect, Fenced, Log, Unread
from crocevia.runtime.control.context import Control
from crocevia.runtime.files.workspace import MEMORY, WorkspaceFiles
from crocevia.runtime.gateway import Gateway
from crocevia.runtime.turns.casting import Cast, cast_of, solo
from crocevia.runtime.turns.driver import Driver, Journal, Perform
from crocevia.runtime.turns.effects import Tally
from crocevia.runtime.turns.hearing import Listener
from crocevia.runtime.turns.models import Mind
from crocevia.runtime.turns.open_chats import Room, Rooms
from crocevia.runtime.turns.purse import Purse
from crocevia.runtime.turns.settings import TurnSettings
from crocevia.runtime.turns.tools import Toolbox
from crocevia.runtime.turns.work import Hands
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
        self.rooms = Rooms(log, settings.rooms)
        self.settings = settings
        self.drivers: dict[str, Driver] = {}
        self.gateway = gateway
        self._toolbox = toolbox
        self._files = files
        self._failed = failed

    async def cast(self, chat: Chat, *, title: bool, without: bool = False, brief: Brief | None = None) -> Cast:
        """Who plays in this chat now. Raises like `cast_of`."""
        memory = await asyncio.to_thread(self._memory, chat.workspace_id)
        limits = self.settings.limits
        return await cast_of(
            self.control, self._toolbox, chat, limits, title=title, memory=memory, without=without, brief=brief
        )

    async def solo(self, agent: Agent, workspace_id: str | None, brief: Brief, limits: Limits) -> Cast:
        """One agent that plays alone. Raises like `casting.solo`."""
        remembers = bool(agent.tools_enabled) and workspace_id is not None
        memory = await asyncio.to_thread(self._memory, workspace_id) if remembers and workspace_id else ""
        return await solo(self.control, self._toolbox, agent, limits, brief, memory=memory)

    async def begin(
        self,
        room: Room,
        cast: Cast,
        entries: list[e.Entry],
        extra: Iterable[Effect] = (),
        listener: Listener | None = None,
    ) -> None:
        """Write the entries that open the room's new turn, and drive it; hold the room's lock."""
        turn = room.fold.turn
        assert turn is not None
        room.tally = Tally()
        room.listener = listener
        driver = self.driver(self.log, room, turn, cast, listener)
        await driver.append(entries, extra)
        self._drive(room, driver)

    async def resume(self, chat: Chat) -> None:
        """Go on with the chat's open turn in a new process. Raises ContextUnavailable, and what `append` raises."""
        async with self.rooms.lock(chat.id):
            room = await self.rooms.enter(chat)
            driver = await self._rebuilt(room)
        if driver is not None:
            self._drive(room, driver)

    async def close(self) -> None:
        """Stop driving; what is open goes on in the next process."""
        tasks = [room.running for room in self.rooms.busy() if room.running is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._toolbox.close()

    def _memory(self, workspace_id: str) -> str:
        try:
            return self._files.read(workspace_id, MEMORY)
        except GatewayError:
            return ""

    async def _cast_again(self, chat: Chat, turn: Turn) -> Cast:
        """The prompts and tools of today for the plan of then; who is gone fails when it is called."""
        try:
            return await self.cast(chat, title=turn.plan.title, without=True, brief=turn.brief)
        except GatewayError:
            return Cast(plan=turn.plan, parts={}, built={}, derived=True)

    def driver(self, log: Journal, room: Room, turn: Turn, cast: Cast, listener: Listener | None = None) -> Driver:
        """Somebody who drives this turn, not yet at work."""
        hands = Hands(cast, self.control.signer, self.settings)
        mind = Mind(self.gateway, cast, self.settings, self.control, Purse(turn), listener)
        perform: dict[type, Perform] = {
            w.CallModel: mind.call_model,
            w.Compact: mind.compact,
            w.MakeTitle: mind.make_title,
            w.RunTool: hands.run_tool,
            w.AskClient: hands.ask_client,
            w.StartChild: hands.start_child,
            w.End: hands.end,
        }
        return Driver(log, room, turn, perform, self._failed)

    def _drive(self, room: Room, driver: Driver) -> None:
        self.drivers[room.chat.id] = driver
        work = self._run(room, driver)
        room.running = asyncio.get_running_loop().create_task(work, name=f"turn {driver.turn.id}")

    async def _run(self, room: Room, driver: Driver | None) -> None:
        """Until the turn has ended. A driver that broke is replaced by one that believes the journal."""
        broken, rest = 0, FIRST_REST
        try:
            while True:
                try:
                    driver = driver or await self._replaced(room, broken >= TRIES)
                    if driver is not None:
                        await driver.run()
                    return
                except Unread:
                    driver = None
                except (Fenced, Unreadable) as error:
                    self._failed("turn", error)
                    self.rooms.forget(room.chat.id)
                    return
                except Exception as error:
                    self._failed("turn", error)
                    driver = None
                    broken += not isinstance(error, GatewayError)  # a store that is not there comes back
                    await asyncio.sleep(rest)
                    rest = min(rest * 2, LAST_REST)
        finally:
            self.drivers.pop(room.chat.id, None)
            room.listener = None

    async def _replaced(self, room: Room, hopeless: bool) -> Driver | None:
        async with self.rooms.lock(room.chat.id):
            room.take(await self.log.replay(room.chat.id))
            room.seen = 0
            driver = await self._rebuilt(room, resume=not hopeless)
            if driver is not None:
                self.drivers[room.chat.id] = driver
                if hopeless:
                    await driver.finish()
            return driver

    async def _rebuilt(self, room: Room, *, resume: bool = True) -> Driver | None:
        """A driver for the room's open turn that has read everything; None if no turn is open. Hold the lock."""
        turn = room.fold.active
        if turn is None:
            return None
        driver = self.driver(self.log, room, turn, await self._cast_again(room.chat, turn), room.listener)
        await driver.read_commands()
        await driver.recover(resume=resume and self.settings.on_restart == "resume")
        return driver
