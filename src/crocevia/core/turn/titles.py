"""A chat's title as it may be stored: one line, at most 80 characters when it is derived, 255 at all."""

from __future__ import annotations

import re

_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029\s]+")


def normalise_title(text: str, limit: int = 255) -> str | None:
    """The words of `text` on one line, cut at `limit` characters. None if nothing is left."""
    return _BREAKS.sub(" ", text).strip()[:limit].strip() or None


def derive_title(message: str) -> str:
    """The title of a chat whose title call gave none."""
    return normalise_title(message, 80) or "Chat"
