"""What callers attach, as parts for a model: documents as text before there is an engine, with a door's own limits."""

from __future__ import annotations

from collections.abc import Sequence

from crocevia.documents.fetch import Fetcher, FetchPolicy
from crocevia.documents.intake import RESPONSES, Capabilities, Limits, Source, Taken, take
from crocevia.documents.workers import Workers

__all__ = ["RESPONSES", "FetchPolicy", "Fetcher", "Intake", "Limits", "Source", "Taken", "Workers"]


class Intake:
    """One per door. limits: of the door. Workers start and sockets open only when a file comes."""

    def __init__(self, limits: Limits, fetcher: Fetcher | None = None, workers: Workers | None = None) -> None:
        self._limits = limits
        self._fetcher = fetcher or Fetcher()
        self._workers = workers or Workers()

    async def close(self) -> None:
        """Close sockets. Idempotent."""
        await self._fetcher.close()

    async def take(self, sources: Sequence[Source], *, images: bool) -> tuple[Taken, ...]:
        """Every source in order, documents always as text. images: the model can see pictures.

        Raises GatewayError: INVALID_REQUEST (which part, and why), UNSUPPORTED, UNAVAILABLE.
        """
        if not sources:
            return ()
        engine = Capabilities(documents=False, images=images)
        return await take(sources, self._limits, engine, fetcher=self._fetcher, workers=self._workers)
