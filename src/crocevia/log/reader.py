"""Following a chat: a cursor that pulls. There is no replay to end and no subscription to begin, so nothing to lose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from typing import Final, NamedTuple

from crocevia.core.detailed_errors import CursorExpired
from crocevia.log.hub import Hub, Reader, Stalled
from crocevia.log.ring import PAGE, Encode, Ring
from crocevia.log.values import Bounds, Log, Row

STORED: Final = 2000  # entries read from the log at once

Write = Callable[[bytes], Awaitable[None]]


def check_cursor(bounds: Bounds, after: int, epoch: str | None) -> None:
    """Raise CursorExpired if no stream can resume after `after`; ask before it opens."""
    if epoch is not None and epoch != bounds.epoch:
        reason = "epoch_changed"
    elif after < bounds.first - 1:
        reason = "trimmed"
    elif after > bounds.head:
        reason = "ahead"
    else:
        return
    raise CursorExpired(reason, epoch=bounds.epoch, first_seq=bounds.first, last_seq=bounds.head)


async def follow(
    log: Log,
    hub: Hub,
    chat: str,
    after: int,
    *,
    version: Hashable,
    encode: Encode,
    ping: Callable[[], bytes],
    write: Write,
) -> None:
    """Write what follows seq `after`, until the hub says that the chat's streams are over; cancel to stop sooner.

    Raises Stalled, and whatever `write` raises.

    encode: an entry as this version's frame; it is called once per entry and version, however many readers
    there are. A ping goes out as soon as the reader has caught up with the head it found, then after 15 s of silence.
    """
    reader = Reader()
    ring = hub.attach(chat, reader)
    try:
        target = (await log.bounds(chat)).head
        if not ring.head:
            ring.reach(target)
        await _Stream(log, hub, chat, ring, reader, version, encode, write).run(after, target, ping)
    except asyncio.CancelledError:
        if not reader.stalled:
            raise
        if reader.task is not None:
            reader.task.uncancel()
        raise Stalled from None
    finally:
        hub.detach(ring, reader)


async def follow_rows(log: Log, hub: Hub, chat: str, after: int) -> AsyncGenerator[list[Row], None]:
    """The rows that follow seq `after`, until the hub says that the chat's streams are over; close it to stop.

    An empty list where `follow` writes a ping. A reader that takes no more for a minute has its task cancelled.
    """
    reader = Reader()
    ring = hub.attach(chat, reader)
    try:
        target = (await log.bounds(chat)).head
        if not ring.head:
            ring.reach(target)
        cursor, greeted = after, False
        while True:
            rows = ring.rows(cursor)
            if rows is None or (cursor < target and not rows):
                rows = await log.read(chat, cursor, PAGE)
            if rows:
                cursor = rows[-1].seq
            elif greeted and cursor >= ring.head and hub.is_over(chat):
                return
            elif (greeted or cursor < target) and await _woken(ring, reader):
                continue
            else:
                greeted = greeted or cursor >= target
            reader.writing_since = hub.now
            yield rows
            reader.writing_since = None
            reader.quiet_since = hub.now
    finally:
        hub.detach(ring, reader)


async def _woken(ring: Ring, reader: Reader) -> bool:
    """Wait until more is shown; False: it has been quiet for long."""
    waits = reader.waits = ring.wait()
    woken = False
    try:
        woken = await waits
    finally:
        reader.waits = None
        if not woken:
            ring.leave(waits)
    return woken


class _Stream(NamedTuple):
    log: Log
    hub: Hub
    chat: str
    ring: Ring
    reader: Reader
    version: Hashable
    encode: Encode
    write: Write

    async def run(self, cursor: int, target: int, ping: Callable[[], bytes]) -> None:
        greeted = False
        chunk = self.ring.chunk
        while True:
            found = chunk(self.version, cursor, self.encode)
            if found is None or (cursor < target and not found[0]):
                found = b"", await self.replay(cursor)
                if found[1] > cursor:
                    cursor = found[1]
                    continue
            data, cursor = found
            if not data:
                if greeted and cursor >= self.ring.head and self.hub.is_over(self.chat):
                    return
                if (greeted or cursor < target) and await _woken(self.ring, self.reader):
                    continue
                greeted = greeted or cursor >= target
                data = ping()
            await self.send(data)

    async def replay(self, cursor: int) -> int:
        """Send what comes next in the log; its last seq."""
        rows = await self.log.read(self.chat, cursor, STORED)
        for at in range(0, len(rows), PAGE):
            await self.send(b"".join(map(self.encode, rows[at : at + PAGE])))
        return rows[-1].seq if rows else cursor

    async def send(self, data: bytes) -> None:
        # Thousands of readers pass here at the same moment: the hub's clock is good enough for minutes.
        self.reader.writing_since = self.hub.now
        await self.write(data)
        self.reader.writing_since = None
        self.reader.quiet_since = self.hub.now
