"""Secrets stay out of whatever can be printed."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import urlsplit, urlunsplit

import msgspec

HIDDEN = "***"
# Keys, bearer tokens and anything shaped like a JWT.
TOKEN = re.compile(r"(?i)envai_sk_[\w.\-]+|\bbearer\s+[^\s\"',;]+|\beyJ[\w\-]{8,}\.[\w\-.]+")
URL = re.compile(r"(?i)\b(?:https?|wss?)://[^\s\"'<>]+")


# What a text field may be called to be printed: names, states and ids, chosen by programs and not by people or models.
PLAIN = frozenset(
    [
        "aspect_ratio",
        "code",
        "currency",
        "alg",
        "basis",
        "crv",
        "error_code",
        "event_type",
        "finish_reason",
        "format",
        "id",
        "kid",
        "kind",
        "kty",
        "lifecycle",
        "media_type",
        "mime_type",
        "mode",
        "model",
        "outcome",
        "provider",
        "role",
        "scope_status",
        "status",
        "tool",
        "tool_name",
        "type",
        "use",
    ]
)


def redacted(value: msgspec.Struct) -> str:
    """A repr that helps and tells nothing: ids, states, numbers and times as they are, of texts how long they are."""
    fields = (f"{name}={shown(name, getattr(value, name))}" for name in value.__struct_fields__ if name != "extra")
    return f"{type(value).__name__}({', '.join(field for field in fields if not field.endswith('=UNSET'))})"


def shown(name: str, value: object) -> str:
    if value is None or isinstance(value, (bool, int, float, msgspec.Struct, msgspec.UnsetType)):
        return repr(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        plain = (name in PLAIN or name.endswith("_id")) and len(value) <= 255
        return repr(scrub(value)) if plain else f"<{len(value)} characters>"
    if isinstance(value, (list, tuple)) and all(isinstance(item, msgspec.Struct) for item in value):
        return f"[{', '.join(map(repr, value[:3]))}{', …' if len(value) > 3 else ''}]"
    return f"<{len(value)} items>" if isinstance(value, (list, tuple, dict)) else f"<{type(value).__name__}>"


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
