"""A chat's events for one reader."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from crocevia.log import Bounds, Hub, Log, Row
from crocevia.log.reader import follow

PAGE: Final = 500


class Feed:
    """A chat's events from a cursor on. bounds: what was there when it was opened."""

    def __init__(self, log: Log, hub: Hub, chat_id: str, after: int, bounds: Bounds) -> None:
        self.bounds = bounds
        self._log = log
        self._hub = hub
        self._chat_id = chat_id
        self._after = after

    async def run(
        self,
        version: Hashable,
        encode: Callable[[Row], bytes],
        ping: Callable[[], bytes],
        write: Callable[[bytes], Awaitable[None]],
    ) -> None:
        """Write what there is and what comes, for ever; cancel to stop. See `log.follow`."""
        await follow(
            self._log,
            self._hub,
            self._chat_id,
            self._after,
            version=version,
            encode=encode,
            ping=ping,
            write=write,
        )

    async def rest(self) -> list[Row]:
        """Everything up to the head of this moment."""
        rows: list[Row] = []
        cursor = self._after
        while cursor < self.bounds.head:
            page = await self._log.read(self._chat_id, cursor, PAGE)
            if not page:
                break
            rows += page
            cursor = page[-1].seq
        return [row for row in rows if row.seq <= self.bounds.head]
