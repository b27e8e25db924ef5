"""What a model says, on its way into the journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from crocevia.core.errors import GatewayError
from crocevia.core.events import ModelEvent, ReasoningDelta, TextDelta
from crocevia.core.turn import entries as e
from crocevia.core.turn.instance import Instance
from crocevia.log import Coalescer, Piece
from crocevia.runtime.gateway import Call
from crocevia.runtime.turns.chat_sessions import now_ms
from crocevia.runtime.turns.driver import Driver


class RunObserver(Protocol):
    """Whoever waits for a run, and hears its model before the journal's readers do."""

    @property
    def alone(self) -> bool:
        """Nobody else follows: what the model says need not be journalled piece by piece."""
        ...

    @property
    def resumes(self) -> bool:
        """It goes on in the next process."""
        ...

    def began(self, call: Call) -> None:
        """A call of the root's model is admitted."""
        ...

    async def take(self, batch: list[ModelEvent]) -> None:
        """Returns when there is session for more."""
        ...

    def failed(self, error: GatewayError) -> None:
        """A call failed with this; the turn's end will say so in prompts."""
        ...


class DeltaWriter:
    """What a model says, on its way into the journal in pieces of a reasonable size."""

    def __init__(
        self,
        driver: Driver,
        instance: Instance,
        lead: str,
        before_text: Callable[[], asyncio.Future[None]] | None,
    ) -> None:
        self._driver = driver
        self._agent = instance.agent
        self._lead = lead
        self._before_text = before_text
        self._pieces = Coalescer()
        self._timer: asyncio.TimerHandle | None = None
        self._open = True

    async def take(self, batch: list[ModelEvent]) -> None:
        for event in batch:
            if isinstance(event, TextDelta):
                if self._before_text is not None and event.text:
                    wait, self._before_text = self._before_text, None
                    await wait()
                self._add("text", self._lead + event.text if event.text else "")
                self._lead = "" if event.text else self._lead
            elif isinstance(event, ReasoningDelta):
                self._add("reasoning", event.text)
        due = self._pieces.due
        if due is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, due - time.monotonic()), self.flush)

    def _add(self, kind: str, text: str) -> None:
        self._tell(self._pieces.add("text" if kind == "text" else "reasoning", text, time.monotonic()))

    def flush(self) -> None:
        """Send what is held."""
        self._stop_timer()
        if self._open:
            self._tell(self._pieces.flush())

    def close(self) -> None:
        """Send what is held, and nothing after it."""
        self.flush()
        self._open = False

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            make = e.TextDelta if piece.kind == "text" else e.ReasoningDelta
            self._driver.tell(make(turn=self._driver.turn.id, at=now_ms(), agent=self._agent, delta=piece.text))
