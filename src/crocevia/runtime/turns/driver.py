"""One open turn at work: takes facts in, appends what follows from them, begins and stops what is wanted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from crocevia.core.turn import Turn, advance, recover, wants_of
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.log import Appended, Command, Effect, Fence
from crocevia.runtime.turns.chat_sessions import ChatSession
from crocevia.runtime.turns.commands import fact_of
from crocevia.runtime.turns.effects import effects_of


class Journal(Protocol):
    """The part of `log.Log` that a driver needs."""

    async def append(
        self, fence: Fence, entries: Sequence[e.Entry], effects: Sequence[Effect] = (), *, read_upto: int | None = None
    ) -> Appended: ...
    async def commands(self, chat: str, after: int = 0) -> list[Command]: ...


WantHandler: TypeAlias = Callable[["Driver", Any], Awaitable[None]]
"""Does what is wanted and posts facts. A want without a handler needs nothing done."""


class InboxItem(msgspec.Struct, frozen=True):
    """A fact on its way into the journal."""

    fact: e.Entry
    accepted: asyncio.Future[bool] | None = None
    """Resolved once the fact is durable; False: it answered nothing any more."""
    command: int = 0
    """The id of the row that it came from, if it came from outside."""

    def moment(self, now: int) -> int:
        """When it counts: what was sent before a deadline was in time, however late it is read."""
        return min(now, self.fact.at) if self.command else now


class Driver:
    """One per open turn, in a task of its own."""

    def __init__(
        self,
        log: Journal,
        session: ChatSession,
        turn: Turn,
        handlers: dict[type, WantHandler],
        on_fault: Callable[[str, BaseException], None],
    ) -> None:
        """handlers: by kind of want. on_fault: told of a handler that raised what it should not have."""
        self.session = session
        self.turn = turn
        self.detached = False
        """It drives no more: nothing that it posts is read."""
        self._log = log
        self._handlers = handlers
        self._on_fault = on_fault
        self._inbox: deque[InboxItem] = deque()
        self._read = self._applied = session.last_command
        self._wakeup = asyncio.Event()
        self._unread = False
        self._running: dict[w.Want, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def now(self) -> int:
        """Milliseconds UTC, as this turn counts them."""
        return self.session.clock.now()

    def post(self, fact: e.Entry) -> None:
        """Something happened."""
        self._put(InboxItem(fact))

    async def commit(self, fact: e.Entry) -> bool:
        """Something happened; returns once it is durable. False: it answers nothing any more."""
        accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._put(InboxItem(fact, accepted))
        return await accepted

    def _put(self, item: InboxItem) -> None:
        self._inbox.append(item)
        self._wakeup.set()

    def look_again(self) -> None:
        """Read commands soon."""
        self._unread = True
        self._wakeup.set()

    async def read_commands(self) -> None:
        """Take in what came from outside."""
        if self.detached:
            return  # its successor reads them
        for command in await self._log.commands(self.session.chat.id, self._read):
            if command.id <= self._read:
                continue  # a concurrent read was faster
            self._read = command.id
            fact = fact_of(self.turn, command) if command.turn == self.turn.id else None
            if fact is not None:
                self._put(InboxItem(fact, command=command.id))

    async def run(self) -> None:
        """Until the turn has ended. Raises what `Log.append` raises: then this turn is ahead of its journal."""
        try:
            await self.read_commands()  # those that came before this driver could be told
            while True:
                if self._unread:
                    self._unread = False
                    await self.read_commands()
                await self._apply_inbox()
                if self.turn.ended:
                    self.session.last_command = self._applied
                    return
                self._start_and_stop()
                await self._wait()
        finally:
            self.detached = True
            await self._stop_all()

    async def recover(self, *, resume: bool, costs: Mapping[str, float | None]) -> None:
        """Settle what a former process left, as of before what has been posted since: read that first."""
        at = min([self.now(), *(item.fact.at for item in self._inbox)])
        await self.append(recover(self.turn, at, resume=resume, costs=costs))

    async def close_turn(self) -> None:
        """Close a turn that is to end."""
        self.post(e.TurnClosing(turn=self.turn.id, at=self.now()))
        await self._apply_inbox()

    async def append(self, entries: list[e.Entry], extra: Iterable[Effect] = ()) -> None:
        """Make entries durable that `turn` has applied, with the rows that follow from them."""
        if not entries:
            return
        session = self.session
        session.costs.add(entries)
        effects = [*extra, *effects_of(session.chat, self.turn, entries, session.costs)]
        await self._log.append(session.fence, entries, effects, read_upto=self._applied)
        for entry in entries:
            session.fold.adopt(entry)

    async def wait_stopped(self, seconds: float) -> None:
        """Let stopped handlers post their last facts."""
        if self._stopping:
            await asyncio.wait(set(self._stopping), timeout=seconds)

    async def _apply_inbox(self) -> None:
        """What is in the inbox and what follows from it, in one transaction. In order, but the end comes last."""
        entries: list[e.Entry] = []
        accepted: list[tuple[asyncio.Future[bool], bool]] = []
        self._wakeup.clear()
        inbox = sorted(self._inbox, key=lambda item: isinstance(item.fact, e.TurnClosing))
        self._inbox.clear()
        for item in inbox:
            self._applied = max(self._applied, item.command)
            new = advance(self.turn, item.fact, item.moment(self.now()))
            entries += new
            if item.accepted is not None:
                accepted.append((item.accepted, bool(new)))
        entries += advance(self.turn, None, self.now())
        await self.append(entries)
        for future, counted in accepted:
            if not future.done():
                future.set_result(counted)

    async def _wait(self) -> None:
        if self._unread:
            return  # told so after the last look
        deadline = self.turn.deadline
        if deadline is None:
            await self._wakeup.wait()
            return
        try:
            async with asyncio.timeout(max(0, deadline - self.now()) / 1000):
                await self._wakeup.wait()
        except TimeoutError:
            return

    def _start_and_stop(self) -> None:
        wants = wants_of(self.turn)
        for want in [want for want in self._running if want not in wants]:
            self._stop(self._running.pop(want))
        for want in wants:
            if want not in self._running and (handler := self._handlers.get(type(want))) is not None:
                self._running[want] = asyncio.get_running_loop().create_task(self._guarded(handler, want))

    async def _guarded(self, handler: WantHandler, want: w.Want) -> None:
        try:
            await handler(self, want)
        except Exception as error:  # an internal fault: the turn must not wait for ever for what will never come
            self._on_fault(type(want).__name__, error)
            if not self.detached:
                self.post(
                    e.TurnFailing(
                        turn=self.turn.id, at=self.now(), code="internal", message="something went wrong here"
                    )
                )

    def _stop(self, task: asyncio.Task[None]) -> None:
        if not task.done():
            task.cancel()
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def _stop_all(self) -> None:
        for task in self._running.values():
            self._stop(task)
        self._running.clear()
        if self._stopping:
            await asyncio.wait(set(self._stopping), timeout=1)
