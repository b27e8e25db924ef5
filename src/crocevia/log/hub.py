"""The bus of one process: a ring per hot chat, one byte cap on all of them, and one clock for all readers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from crocevia.log.ring import Ring
from crocevia.log.values import Row

BYTES: Final = 64 * 1024 * 1024  # of all rings together
UNREAD_RINGS: Final = 1024  # kept for chats that nobody reads
QUIET: Final = 15.0  # seconds after which a silent stream gets a ping
STALL: Final = 60.0  # seconds after which a reader that cannot write is closed
SWEEP: Final = 1.0


class Stalled(Exception):
    """The reader could not write for a minute. It may come back with its cursor."""


class Reader:
    """One open stream. Costs its cursor and the page it is writing."""

    __slots__ = ("quiet_since", "stalled", "task", "waits", "writing_since")

    def __init__(self) -> None:
        self.task = asyncio.current_task()
        self.waits: asyncio.Future[bool] | None = None
        self.quiet_since = 0.0
        self.writing_since: float | None = None
        self.stalled = False


class Hub:
    """Use it from one event loop."""

    def __init__(self, *, capacity: int = BYTES, quiet: float = QUIET, stall: float = STALL) -> None:
        self._rings: dict[str, Ring] = {}
        self._readers: set[Reader] = set()
        self._capacity = capacity
        self._quiet = quiet
        self._stall = stall
        self._sweep_every = min(SWEEP, quiet / 4, stall / 4)
        self._sweeping: asyncio.TimerHandle | None = None
        self.is_over: Callable[[str], bool] = lambda chat: False
        """Whether the streams of a chat end once their readers have all there is."""
        self.size = 0
        self.now = 0.0
        """Its clock, never more than a sweep behind while there are readers."""

    def head(self, chat: str) -> int:
        """The newest seq known here; 0 if nothing is."""
        ring = self._rings.get(chat)
        return 0 if ring is None else ring.head

    def ring(self, chat: str) -> Ring:
        ring = self._rings.get(chat)
        if ring is None:
            ring = self._rings[chat] = Ring(self._grown)
            if len(self._rings) > UNREAD_RINGS:
                self._drop_unread()
        return ring

    def publish(self, chat: str, rows: Sequence[Row], *, urgent: bool = False) -> None:
        """Entries that have just become durable, in order."""
        ring = self.ring(chat)
        self._rings[chat] = self._rings.pop(chat)  # the most recent stays longest
        ring.add(rows, urgent=urgent)
        if self.size > self._capacity:
            self._shrink()

    def reach(self, chat: str, head: int) -> None:
        """A hint: the chat has entries up to `head`, written elsewhere."""
        ring = self._rings.get(chat)
        if ring is not None:
            ring.reach(head)

    def forget(self, chat: str) -> None:
        """What is in memory of this chat is no longer what is in its log."""
        ring = self._rings.get(chat)
        if ring is not None:
            ring.clear()

    def end_streams(self, is_over: Callable[[str], bool]) -> None:
        """From now on the streams of the chats of which `is_over` holds end; `wake` a chat that comes to be one."""
        self.is_over = is_over
        for ring in self._rings.values():
            ring.flush()

    def wake(self, chat: str) -> None:
        """Have the chat's waiting readers look again."""
        ring = self._rings.get(chat)
        if ring is not None:
            ring.flush()

    def attach(self, chat: str, reader: Reader) -> Ring:
        loop = asyncio.get_running_loop()
        reader.quiet_since = self.now = loop.time()
        self._readers.add(reader)
        ring = self.ring(chat)
        ring.readers += 1
        if self._sweeping is None:
            self._sweeping = loop.call_later(self._sweep_every, self._sweep)
        return ring

    def detach(self, ring: Ring, reader: Reader) -> None:
        self._readers.discard(reader)
        ring.readers -= 1
        if not self._readers and self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None

    def _grown(self, size: int) -> None:
        self.size += size

    def _shrink(self) -> None:
        """Oldest chats first; of the last one left, the oldest entries."""
        for ring in list(self._rings.values()):
            if self.size <= self._capacity:
                return
            while ring.size and self.size > self._capacity:
                ring.drop(1)

    def _drop_unread(self) -> None:
        unread = [chat for chat, ring in self._rings.items() if not ring.readers]
        for chat in unread[: len(unread) // 2]:
            ring = self._rings.pop(chat)
            ring.clear()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = self.now = loop.time()
        for reader in self._readers:
            if reader.waits is not None and now - reader.quiet_since >= self._quiet and not reader.waits.done():
                reader.waits.set_result(False)
            elif reader.writing_since is not None and now - reader.writing_since >= self._stall and reader.task:
                reader.stalled = True
                reader.task.cancel()
        self._sweeping = loop.call_later(self._sweep_every, self._sweep)
