"""The chats that are in memory: each with the right to append, what its journal says, and who drives its turn."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol
from weakref import WeakValueDictionary

from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.events import ModelEvent
from crocevia.core.turn import Unreadable, hydrate
from crocevia.core.turn import entries as e
from crocevia.log import Bounds, Fence, Log
from crocevia.runtime.gateway import Call
from crocevia.runtime.turns.effects import CostCounter
from crocevia.storage.chats import Chat

NODE: Final = "local"
LEASE_MS: Final = 24 * 3_600_000  # one process serves a home: nobody else can ask


class TurnClock:
    """Milliseconds UTC that no step of the system's clock reaches: read from it once, then counted."""

    __slots__ = ("_began", "_since")

    def __init__(self) -> None:
        self.set(0)

    def set(self, latest: int) -> None:
        """Begin at the system's time, but not before `latest`."""
        self._began, self._since = max(now_ms(), latest), time.monotonic_ns()

    def now(self) -> int:
        return self._began + (time.monotonic_ns() - self._since) // 1_000_000


class ContextUnavailable(GatewayError):
    """A chat's journal cannot be read. Nothing is guessed from it."""

    def __init__(self) -> None:
        super().__init__(Reason.CONTEXT_UNAVAILABLE)


class RunObserver(Protocol):
    """Follows the root's model calls of a run, ahead of the journal's readers."""

    @property
    def sole_reader(self) -> bool:
        """Nobody else follows: what the model says need not be journalled delta by delta."""
        ...

    @property
    def resumable(self) -> bool:
        """The run goes on in the next process."""
        ...

    def call_started(self, call: Call, fail_turn: Callable[[str, str], None]) -> None:
        """A call is admitted. fail_turn: ends the turn with a code and a message."""
        ...

    async def receive(self, batch: list[ModelEvent]) -> None:
        """Returns when there is room for more."""
        ...

    def call_failed(self, error: GatewayError) -> None:
        """The call failed; the turn's end will only say so in words."""
        ...


class ChatSession:
    """One chat in memory."""

    __slots__ = ("chat", "clock", "costs", "fence", "fold", "last_command", "observer", "running")

    def __init__(self, chat: Chat, fence: Fence, entries: list[e.Entry]) -> None:
        self.chat = chat
        self.fence = fence
        self.last_command = 0
        """The id of the newest command that an earlier turn has taken in."""
        self.running: asyncio.Task[None] | None = None
        """Drives the turn."""
        self.observer: RunObserver | None = None
        """Of the turn, where it is a run whose caller waits."""
        self.clock = TurnClock()
        """Set when a turn is opened, or resumed by another process."""
        self.rebuild(entries)
        self.set_clock()

    def rebuild(self, entries: list[e.Entry]) -> None:
        """From the journal. Raises Unreadable."""
        self.fold = hydrate(entries)
        self.costs = CostCounter()
        opened = [at for at, entry in enumerate(entries) if isinstance(entry, e.TurnOpened)]
        self.costs.add(entries[opened[-1] if opened else 0 :])

    def set_clock(self) -> None:
        self.clock.set(0 if self.fold.turn is None else self.fold.turn.latest)

    @property
    def title(self) -> str | None:
        return self.fold.title or self.chat.title

    @property
    def is_driven(self) -> bool:
        return self.running is not None and not self.running.done()


class ChatSessions:
    """All chats in memory; one per server."""

    def __init__(self, log: Log, max_idle: int) -> None:
        self._log = log
        self._max_idle = max_idle
        self._sessions: OrderedDict[str, ChatSession] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, chat_id: str) -> asyncio.Lock:
        """One at a time may change a chat that is idle."""
        lock = self._locks.get(chat_id)
        if lock is None:
            lock = self._locks[chat_id] = asyncio.Lock()
        return lock

    def find(self, chat_id: str) -> ChatSession | None:
        """The session, if it is in memory."""
        return self._sessions.get(chat_id)

    def forget(self, chat_id: str) -> None:
        """What is in memory is not what is in the journal."""
        self._sessions.pop(chat_id, None)

    async def enter(self, chat: Chat) -> ChatSession:
        """The chat's session; hold its lock. Raises ContextUnavailable."""
        session = self._sessions.get(chat.id)
        if session is None:
            fence = await self.fence(chat.id)
            try:
                session = ChatSession(chat, fence, await self._log.replay(chat.id))
            except Unreadable:
                raise ContextUnavailable from None
            self._sessions[chat.id] = session
            self._evict()
        session.chat = chat
        self._sessions.move_to_end(chat.id)
        return session

    async def fence(self, chat_id: str) -> Fence:
        """The right to append to a chat's log. Raises GatewayError(UNAVAILABLE) while another node has it."""
        await self.bounds(chat_id)
        fence = await self._log.acquire(chat_id, NODE, LEASE_MS, now_ms())
        if fence is None:
            raise GatewayError(Reason.UNAVAILABLE, retry_after=1)
        return fence

    async def bounds(self, chat_id: str) -> Bounds:
        """Of a chat that exists: its log is made when it is first asked for."""
        try:
            return await self._log.bounds(chat_id)
        except GatewayError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            return await self._log.create(chat_id)

    def driven(self) -> list[ChatSession]:
        """Those in which a turn is driven."""
        return [session for session in self._sessions.values() if session.is_driven]

    def _evict(self) -> None:
        surplus = len(self._sessions) - self._max_idle
        for chat_id, session in list(self._sessions.items()):
            if surplus <= 0:
                return
            if not session.is_driven and not self.lock(chat_id).locked():
                del self._sessions[chat_id]
                surplus -= 1


def now_ms() -> int:
    """Milliseconds UTC."""
    return time.time_ns() // 1_000_000
