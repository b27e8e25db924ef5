"""Following a chat: a cursor that pulls. There is no replay to end and no subscription to begin, so nothing to lose."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple

from crocevia.core.errors import Code, GatewayError, say

from .hub import Hub, Reader, Stalled
from .ring import PAGE, Encode, Ring
from .values import Bounds, Log

Write = Callable[[bytes], Awaitable[None]]


def check_cursor(bounds: Bounds, after: int, epoch: str | None) -> None:
    """Raise GatewayError(CONFLICT, `cursor_expired`) if no stream can resume after `after`; ask before it opens."""
    if epoch is not None and epoch != bounds.epoch:
        reason = "epoch_changed"
    elif after < bounds.first - 1:
        reason = "trimmed"
    elif after > bounds.head:
        reason = "ahead"
    else:
        return
    details = say("cursor_expired", reason=reason, epoch=bounds.epoch, first_seq=bounds.first, last_seq=bounds.head)
    raise GatewayError(Code.CONFLICT, details, param="after")


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
    """Write what follows seq `after`, for ever; cancel to stop. Raises Stalled, and whatever `write` raises.

    encode: an entry as this version's frame; it is called once per entry and version, however many readers
    there are. A ping goes out as soon as the reader has caught up with the head it found, then after 15 s of silence.
    """
    reader = Reader(asyncio.get_running_loop().time())
    ring = hub.attach(chat, reader)
    try:
        target = (await log.bounds(chat)).head
        if not ring.head:
            ring.reach(target)
        stream = _Stream(log, chat, ring, reader, version, encode, write)
        await stream.run(after, target, ping)
    except asyncio.CancelledError:
        if not reader.stalled:
            raise
        if reader.task is not None:
            reader.task.uncancel()
        raise Stalled from None
    finally:
        hub.detach(ring, reader)


class _Stream(NamedTuple):
    log: Log
    chat: str
    ring: Ring
    reader: Reader
    version: Hashable
    encode: Encode
    write: Write

    async def run(self, cursor: int, target: int, ping: Callable[[], bytes]) -> None:
        greeted = False
        while True:
            data, cursor = await self.page(cursor, target)
            if data:
                await self.send(data)
            elif not greeted and cursor >= target:
                greeted = True
                await self.send(ping())
            elif not await self.pause():
                await self.send(ping())

    async def page(self, cursor: int, target: int) -> tuple[bytes, int]:
        """What comes next: from the ring, else from the log."""
        found = self.ring.chunk(self.version, cursor, self.encode)
        if found is not None and (found[0] or cursor >= target):
            return found
        rows = await self.log.read(self.chat, cursor, PAGE)
        return b"".join(map(self.encode, rows)), rows[-1].seq if rows else cursor

    async def send(self, data: bytes) -> None:
        clock = asyncio.get_running_loop().time
        self.reader.writing_since = clock()
        await self.write(data)
        self.reader.writing_since = None
        self.reader.quiet_since = clock()

    async def pause(self) -> bool:
        """Until more is shown; False: it has been quiet for long."""
        waits = self.reader.waits = self.ring.wait()
        try:
            return await waits
        finally:
            self.reader.waits = None
            self.ring.leave(waits)
