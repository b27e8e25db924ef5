"""The one clock that deadlines, delays and durations are read from; a test may put another in its place."""

from __future__ import annotations

import time

source = time.monotonic


def monotonic() -> float:
    """Seconds that never go back."""
    return source()
