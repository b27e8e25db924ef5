"""«Something happened in this chat»: the newest head of each chat for every listener, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator


class Hints:
    """Lossy on purpose: a listener that is slow sees only the last head of each chat."""

    def __init__(self) -> None:
        self._listeners: list[tuple[dict[str, int], asyncio.Event]] = []

    def give(self, chat: str, head: int) -> None:
        for heads, event in self._listeners:
            heads[chat] = max(head, heads.get(chat, 0))
            event.set()

    async def listen(self) -> AsyncIterator[tuple[str, int]]:
        heads: dict[str, int] = {}
        event = asyncio.Event()
        listener = (heads, event)
        self._listeners.append(listener)
        try:
            while True:
                await event.wait()
                event.clear()
                while heads:
                    yield heads.popitem()
        finally:
            self._listeners.remove(listener)
