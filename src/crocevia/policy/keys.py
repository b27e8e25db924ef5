"""Keys are known by their digest; the key itself is never kept."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

_NOBODY = "0" * 64


def digest(key: str | bytes) -> str:
    """The SHA-256 of a key in hex. Keys are long and random, so a slow hash would only slow every call."""
    return hashlib.sha256(key.encode() if isinstance(key, str) else key).hexdigest()


def matches(key: str | bytes, digests: Iterable[str]) -> bool:
    """Whether `key` is one of those known by `digests`; an unknown owner takes as long as a wrong key."""
    offered = digest(key)
    found = False
    for known in tuple(digests) or (_NOBODY,):
        found |= hmac.compare_digest(offered, known)
    return found
