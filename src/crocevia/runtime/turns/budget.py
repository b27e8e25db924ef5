"""The money of one turn: model calls that run at the same time never count on the same dollar."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crocevia.core.turn import Turn


class TurnBudget:
    """Sets money aside within the turn's own limit. One per turn; belongs to one event loop."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._limit = turn.plan.limits.cost_usd
        self._held = 0.0
        self._calls = 0
        self._freed = asyncio.Event()

    @property
    def bounded(self) -> bool:
        return self._limit is not None

    @asynccontextmanager
    async def reserve(self, most: float) -> AsyncIterator[None]:
        """Hold `most` USD while a call runs. One that does not fit waits for the others, then goes alone.

        Leave only once the turn knows what the call cost. Waits for ever when all is spent: the turn is ending.
        """
        while not self._fits(most):
            self._freed.clear()
            await self._freed.wait()
        self._held += most
        self._calls += 1
        try:
            yield
        finally:
            self._held -= most
            self._calls -= 1
            self._freed.set()

    def _fits(self, most: float) -> bool:
        if self._limit is None:
            return True
        if self._turn.cost_limit_reached:
            return False
        return not self._calls or self._held + most <= self._limit - self._turn.known_cost
