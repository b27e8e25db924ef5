"""A call of a model that answers nobody in the turn: a summary, a title."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from crocevia.core.errors import GatewayError
from crocevia.core.turn.instance import Instance
from crocevia.runtime.gateway import Call
from crocevia.runtime.turns.steps import Bill, bill_of


class UtilityCall:
    """A call whose pieces nobody reads. text: what it said, "" unless it came to its end."""

    def __init__(self, instance: Instance, opening: Callable[[], Call]) -> None:
        self.text = ""
        self._instance = instance
        self._opening = opening
        self._call: Call | None = None

    async def listen(self, seconds: float, hurry: asyncio.Event | None = None) -> None:
        """It is over after `seconds`, or when `hurry` is set."""
        watching = [asyncio.create_task(self._listen())]
        if hurry is not None:
            watching.append(asyncio.create_task(_wait(hurry)))
        try:
            await asyncio.wait(watching, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _listen(self) -> None:
        with suppress(GatewayError):
            call = self._call = self._opening()
            async with call:
                await call.answer()
            self.text = call.fold.answer().text.strip()

    @property
    def bill(self) -> Bill:
        return bill_of(self._call, self._instance)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
