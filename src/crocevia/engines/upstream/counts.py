"""Token counts as providers send them: figures, or nonsense, which is unknown."""

from __future__ import annotations

from typing import Any

from crocevia.core.usage import LARGEST_TOKENS, plausible


def figure(value: Any) -> int | None:
    """A count; None for what is none. Whether it is within reason, `core.usage` says."""
    return int(value) if type(value) in (int, float) and 0 <= value < 2**63 else None


def tokens(usage: Any, name: str) -> int | None:
    """A count out of an object of them, within reason."""
    return plausible(figure(usage.get(name)), LARGEST_TOKENS) if isinstance(usage, dict) else None
