"""What the headers of a request say."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.asgi.types import Scope
from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.control.operators import Approach

_RESERVED: Final = ("subagent:", "cron:", "acp:")
_KEY_LENGTH: Final = 256


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """length: the declared length of the body. agent, model, session: the caller's own choice of each."""

    approach: Approach
    length: int | None
    agent: str | None
    model: str | None
    session: str | None
    channel: str | None


def read(scope: Scope) -> Head:
    """Raises nothing: what is wrong with a header is said when it is used."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    length = headers.get("content-length", "")
    peer = scope.get("client")
    return Head(
        approach=Approach(peer=peer[0] if peer else None, headers=headers),
        length=int(length) if length.isdigit() else None,
        agent=_given(headers, "x-openclaw-agent-id") or _given(headers, "x-openclaw-agent"),
        model=_given(headers, "x-openclaw-model"),
        session=_given(headers, "x-openclaw-session-key"),
        channel=_given(headers, "x-openclaw-message-channel"),
    )


def session_key(head: Head) -> str | None:
    """The session that the caller names. Raises GatewayError(INVALID_REQUEST) for a name that is not theirs to use."""
    key = head.session
    if key is None:
        return None
    bare = key.lower()
    if bare.startswith("agent:"):
        bare = bare.split(":", 2)[-1]
    if bare.startswith(_RESERVED):
        raise GatewayError(Reason.SESSION_RESERVED)
    if len(key) > _KEY_LENGTH:
        raise GatewayError(Reason.SESSION_LONG, limit=_KEY_LENGTH)
    return key


def _given(headers: dict[str, str], name: str) -> str | None:
    return headers.get(name, "").strip() or None
