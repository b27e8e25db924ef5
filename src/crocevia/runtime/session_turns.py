"""Who may speak in a session: one turn at a time, the others in line, and the line is short."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from crocevia.core.errors import GatewayError, Reason

WAITING: Final = 8  # turns of one session
PATIENCE_SECONDS: Final = 30.0
RETRY_SECONDS: Final = 5

Key: TypeAlias = tuple[str, str, str]


class SessionTurn:
    """The right to speak, until it is released or nobody holds it any more."""

    __slots__ = ("_leave",)

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave: Callable[[], None] | None = leave

    def release(self) -> None:
        """Let the next one speak. Idempotent."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    def __del__(self) -> None:
        self.release()  # a request that was given up between two steps must not silence the session


class SessionTurns:
    """One per server; belongs to one event loop."""

    def __init__(self) -> None:
        self._lines: dict[Key, deque[asyncio.Future[None]]] = {}

    def try_enter(self, key: Key) -> SessionTurn | None:
        """None if somebody speaks already."""
        if key in self._lines:
            return None
        self._lines[key] = deque()
        return SessionTurn(lambda: self._next(key))

    async def enter(self, key: Key) -> SessionTurn:
        """Wait in line. Raises GatewayError(CONFLICT) if the line is full, or does not move for long."""
        turn = self.try_enter(key)
        if turn is not None:
            return turn
        line = self._lines[key]
        if len(line) >= WAITING:
            raise busy()
        mine = asyncio.get_running_loop().create_future()
        line.append(mine)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await mine
        except BaseException as error:
            if mine.done() and not mine.cancelled():
                self._next(key)  # it came just too late
            else:
                with suppress(ValueError):
                    line.remove(mine)
            if isinstance(error, TimeoutError):
                raise busy() from None
            raise
        return SessionTurn(lambda: self._next(key))

    def _next(self, key: Key) -> None:
        line = self._lines[key]
        while line:
            waiting = line.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
        del self._lines[key]


def busy() -> GatewayError:
    """What is said too early is to be said again."""
    return GatewayError(Reason.SESSION_BUSY, retry_after=RETRY_SECONDS)
