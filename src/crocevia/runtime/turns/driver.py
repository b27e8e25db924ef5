"""One open turn at work: takes facts in, appends what follows from them, begins and stops what is wanted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from crocevia.core.turn import Turn, advance, recover, wants_of
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.log import Appended, Command, Effect, Fence
from crocevia.runtime.turns.chat_sessions import ChatSession, now_ms
from crocevia.runtime.turns.commands import fact_of
from crocevia.runtime.turns.effects import effects_of


class Journal(Protocol):
    """The part of `log.Log` that a driver needs."""

    async def append(
        self, fence: Fence, entries: Sequence[e.Entry], effects: Sequence[Effect] = (), *, read_upto: int | None = None
    ) -> Appended: ...
    async def commands(self, chat: str, after: int = 0) -> list[Command]: ...


Perform: TypeAlias = Callable[["Driver", Any], Awaitable[None]]
"""Does what is wanted and reports facts. None of it returns anything; a want that needs nothing done has no entry."""

_BUSY = (w.CallModel, w.RunTool, w.Compact, w.End)


class InboxItem(msgspec.Struct, frozen=True):
    """A fact on its way into the journal. heard: told whether it still answered something.

    command: the id of the row that it came from, if it came from outside.
    """

    fact: e.Entry
    heard: asyncio.Future[bool] | None = None
    command: int = 0

    def moment(self, now: int) -> int:
        """When it counts: what was said before a deadline was in time, however late it is read."""
        return min(now, self.fact.at) if self.command else now


class Driver:
    """perform: by kind of want. failed: told of a task that raised what it should not have."""

    def __init__(
        self,
        log: Journal,
        session: ChatSession,
        turn: Turn,
        perform: dict[type, Perform],
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self.session = session
        self.turn = turn
        self.detached = False
        self._log = log
        self._perform = perform
        self._failed = failed
        self._inbox: deque[InboxItem] = deque()
        self._read = self._taken = session.seen
        self._news = asyncio.Event()
        self._begun: dict[w.Want, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Something is under way that ends by itself."""
        return any(isinstance(want, _BUSY) and not task.done() for want, task in self._begun.items())

    def tell(self, fact: e.Entry) -> None:
        """Something happened."""
        self._inbox.append(InboxItem(fact))
        self._news.set()

    async def report(self, fact: e.Entry) -> bool:
        """Something happened; wait until it is durable. False: it answers nothing any more."""
        heard: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._inbox.append(InboxItem(fact, heard))
        self._news.set()
        return await heard

    async def read_commands(self) -> None:
        """Take in what came from outside."""
        if self.detached:
            return  # its successor reads them
        for command in await self._log.commands(self.session.chat.id, self._read):
            if command.id <= self._read:
                continue  # another reading was faster
            self._read = command.id
            fact = fact_of(self.turn, command) if command.turn == self.turn.id else None
            if fact is not None:
                self._inbox.append(InboxItem(fact, command=command.id))
                self._news.set()

    async def run(self) -> None:
        """Until the turn has ended. Raises what `Log.append` raises: then this turn is ahead of its journal."""
        try:
            await self.read_commands()  # those that came before anybody could tell this driver
            while True:
                await self._take()
                if self.turn.ended:
                    self.session.seen = self._taken
                    return
                self._begin_and_stop()
                await self._wait()
        finally:
            self.detached = True
            await self._stop_all()

    async def recover(self, *, resume: bool) -> None:
        """Settle what a former process left: as it was before what has been said since, so read that first."""
        at = min([now_ms(), *(item.fact.at for item in self._inbox)])
        await self.append(recover(self.turn, at, resume=resume))

    async def finish(self) -> None:
        """Close a turn that is to end."""
        self.tell(e.TurnClosing(turn=self.turn.id, at=now_ms()))
        await self._take()

    async def append(self, entries: list[e.Entry], extra: Iterable[Effect] = ()) -> None:
        """Make entries durable, that `turn` has applied, with the rows that follow from them."""
        if not entries:
            return
        session = self.session
        session.costs.add(entries)
        effects = [*extra, *effects_of(session.chat, self.turn, entries, session.costs)]
        await self._log.append(session.fence, entries, effects, read_upto=self._taken)
        for entry in entries:
            session.fold.adopt(entry)

    async def stopped(self, seconds: float) -> None:
        """Give what was stopped its last prompts."""
        if self._stopping:
            await asyncio.wait(set(self._stopping), timeout=seconds)

    async def _take(self) -> None:
        """What is in the inbox and what follows from it, in one transaction. In spec, but the end comes last."""
        entries: list[e.Entry] = []
        heard: list[tuple[asyncio.Future[bool], bool]] = []
        self._news.clear()
        inbox = sorted(self._inbox, key=lambda item: isinstance(item.fact, e.TurnClosing))
        self._inbox.clear()
        for item in inbox:
            self._taken = max(self._taken, item.command)
            new = advance(self.turn, item.fact, item.moment(now_ms()))
            entries += new
            if item.heard is not None:
                heard.append((item.heard, bool(new)))
        entries += advance(self.turn, None, now_ms())
        await self.append(entries)
        for future, took in heard:
            if not future.done():
                future.set_result(took)

    async def _wait(self) -> None:
        deadline = self.turn.deadline
        if deadline is None:
            await self._news.wait()
            return
        try:
            async with asyncio.timeout(max(0, deadline - now_ms()) / 1000):
                await self._news.wait()
        except TimeoutError:
            return

    def _begin_and_stop(self) -> None:
        wants = wants_of(self.turn)
        for want in [want for want in self._begun if want not in wants]:
            self._stop(self._begun.pop(want))
        for want in wants:
            if want not in self._begun and (perform := self._perform.get(type(want))) is not None:
                self._begun[want] = asyncio.get_running_loop().create_task(self._carefully(perform, want))

    async def _carefully(self, perform: Perform, want: w.Want) -> None:
        try:
            await perform(self, want)
        except Exception as error:  # ours alone: the turn must not wait for ever for what will never come
            self._failed(type(want).__name__, error)
            if not self.detached:
                self.tell(
                    e.TurnFailing(turn=self.turn.id, at=now_ms(), code="internal", message="something went wrong here")
                )

    def _stop(self, task: asyncio.Task[None]) -> None:
        if not task.done():
            task.cancel()
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def _stop_all(self) -> None:
        for task in self._begun.values():
            self._stop(task)
        self._begun.clear()
        if self._stopping:
            await asyncio.wait(set(self._stopping), timeout=1)
