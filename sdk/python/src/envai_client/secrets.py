"""Secrets stay out of whatever can be printed."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

HIDDEN = "***"
# Keys, bearer tokens and anything shaped like a JWT.
TOKEN = re.compile(r"(?i)envai_sk_[\w.\-]+|\bbearer\s+[^\s\"',;]+|\beyJ[\w\-]{8,}\.[\w\-.]+")
URL = re.compile(r"(?i)\b(?:https?|wss?)://[^\s\"'<>]+")


class Secret:
    """A string that never prints itself. `reveal()` is the only way out."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN!r})"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret is not serialised")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


def safe_url(url: str) -> str:
    """`url` without credentials, query and fragment: what may be logged of a signed URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    query = HIDDEN if parts.query else ""
    return urlunsplit((parts.scheme, host + port, parts.path, query, ""))


def scrub(text: str) -> str:
    """`text` with tokens and URL queries hidden: for messages written by others."""
    return URL.sub(lambda match: safe_url(match.group()), TOKEN.sub(HIDDEN, text))
