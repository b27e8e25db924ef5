"""Whether engines can be reached: probed in the background, remembered for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from crocevia.core.errors import GatewayError, Reason, Sentence, say
from crocevia.runtime.gateway import EngineSource

FRESH_SECONDS: Final = 60.0
PATIENCE_SECONDS: Final = 20.0


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What the last probe of an engine found."""

    state: Literal["ok", "failed", "checking"]
    checked_at: float | None = None
    """Unix seconds."""
    message: Sentence | None = None
    """Why it failed."""


CHECKING: Final = Health(state="checking")


class HealthBoard:
    """One probe per engine at a time, at most one a minute unless asked."""

    def __init__(self) -> None:
        self._known: dict[str, Health] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def check(self, names: Iterable[str], source: EngineSource, *, patience: float = 1.5) -> dict[str, Health]:
        """The health of these engines; outdated ones are probed, and awaited for at most `patience` seconds."""
        names = list(names)
        now = time.time()
        for name in names:
            known = self._known.get(name)
            if known is None or now - (known.checked_at or 0) > FRESH_SECONDS:
                self.probe(name, source)
        running = [self._tasks[name] for name in names if name in self._tasks]
        if running:
            await asyncio.wait(running, timeout=patience)
        return {name: CHECKING if name in self._tasks else self._known.get(name, CHECKING) for name in names}

    def probe(self, name: str, source: EngineSource) -> None:
        """Start a probe, if none is running."""
        if name not in self._tasks:
            task = asyncio.ensure_future(self._probe(name, source))
            self._tasks[name] = task
            task.add_done_callback(lambda _: self._tasks.pop(name, None))

    def forget(self, name: str) -> None:
        """Drop what is known: its declaration changed."""
        self._known.pop(name, None)

    async def _probe(self, name: str, source: EngineSource) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await source(name).probe()
            message = None
        except GatewayError as error:
            message = error.message
        except TimeoutError:
            message = say(Reason.UPSTREAM_TIMEOUT)
        except Exception:  # whatever an engine raised against its contract, it cannot be used
            message = say(Reason.ENGINE_UNUSABLE, engine=name)
        state: Literal["ok", "failed"] = "ok" if message is None else "failed"
        self._known[name] = Health(state=state, checked_at=time.time(), message=message)
