"""What every engine is built with, beside its declaration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from crocevia.engines.upstream.http import HttpClient


class EngineContext(msgspec.Struct, frozen=True, kw_only=True):
    """The process around an engine."""

    http: HttpClient
    """The one way out to providers, shared by all engines."""
    models_dir: Path
    """Where embedded weights are."""
    api_key: str | None = None
    """The engine's own key, as it is sent."""

    def __repr__(self) -> str:
        return f"EngineContext(models_dir={str(self.models_dir)!r}, api_key={'set' if self.api_key else None})"
