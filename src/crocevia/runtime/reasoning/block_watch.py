"""Projects whose app does not send provider blocks back, so that the fallback model answers: seen at every call."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from crocevia.core.catalogue import ProjectSpec
from crocevia.storage import provider_blocks

if TYPE_CHECKING:
    from crocevia.storage.database import Transaction

WRITE_SECONDS: Final = 60.0  # an app that stays as it is costs at most one write a minute


class Poster(Protocol):
    """The part of `storage.database.Database` that is needed here."""

    def post(self, work: Callable[[Transaction], object]) -> None: ...


class BlockWatch:
    """since: projects and when their app was last seen without blocks, as the store has it."""

    def __init__(
        self, database: Poster, since: dict[str, float] | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._since = dict(since or {})
        self._clock = clock

    def __call__(self, project: ProjectSpec, blocks_missing: bool) -> None:
        """A call came whose tool round is open. blockless: some of its blocks did not come, and the model reasons."""
        before, now = self._since.get(project.name), self._clock()
        if blocks_missing and (before is None or now - before >= WRITE_SECONDS):
            self._since[project.name] = now
            self._database.post(lambda tx: provider_blocks.mark_app(tx, project.name, now))
        elif not blocks_missing and before is not None:
            del self._since[project.name]
            self._database.post(lambda tx: provider_blocks.mark_app(tx, project.name, None))
