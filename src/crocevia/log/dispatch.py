"""Who drives a chat's turn: asked to wake a chat, somebody runs it, one at a time per chat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol


class Dispatcher(Protocol):
    async def wake(self, chat: str) -> None:
        """Let the owner look at this chat soon. At least once; doing it twice does no harm."""
        ...


class LocalDispatcher:
    """Runs `run(chat)` as a task of this process; a wake while it runs makes it run once more afterwards.

    `failed` is told of a run that raised; the next wake tries again.
    """

    def __init__(
        self, run: Callable[[str], Awaitable[None]], failed: Callable[[str, BaseException], None] | None = None
    ) -> None:
        self._run = run
        self._failed = failed
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    async def wake(self, chat: str) -> None:
        if chat in self._running:
            self._again.add(chat)
            return
        self._running[chat] = asyncio.get_running_loop().create_task(self._drive(chat))

    async def _drive(self, chat: str) -> None:
        try:
            while True:
                self._again.discard(chat)
                try:
                    await self._run(chat)
                except Exception as error:
                    if self._failed is not None:
                        self._failed(chat, error)
                if chat not in self._again:
                    return
        finally:
            self._running.pop(chat, None)
            self._again.discard(chat)

    async def close(self) -> None:
        """Stop what runs and wait for it."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
