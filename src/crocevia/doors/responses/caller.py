"""Who asks, and what the headers of a request choose."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from crocevia.asgi import http
from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.control.operators import Credentials, Operator, Operators

READ: Final = "operator.read"
WRITE: Final = "operator.write"
_RESERVED: Final = ("subagent:", "cron:", "acp:")
_KEY_LENGTH: Final = 256


class OperatorCaller(msgspec.Struct, frozen=True, kw_only=True):
    """An operator, with the caller's own choice of agent, model, session and channel."""

    operator: Operator
    agent: str | None
    model: str | None
    session: str | None
    channel: str | None


Request: TypeAlias = http.Request[OperatorCaller]


async def authenticate(operators: Operators, request: http.Request[OperatorCaller | None]) -> OperatorCaller | None:
    """Whoever holds what the gateway asks for; None where nobody has to. Raises GatewayError."""
    if request.operation.public:
        return None
    headers = _joined(request.scope["headers"])
    peer = request.scope.get("client")
    operator = await operators.authenticate(Credentials(peer=peer[0] if peer else None, headers=headers))
    operator.grant.require(request.operation.rule)
    return OperatorCaller(
        operator=operator,
        agent=_given(headers, "x-openclaw-agent-id") or _given(headers, "x-openclaw-agent"),
        model=_given(headers, "x-openclaw-model"),
        session=_given(headers, "x-openclaw-session-key"),
        channel=_given(headers, "x-openclaw-message-channel"),
    )


def session_key(caller: OperatorCaller) -> str | None:
    """The session that the caller names. Raises GatewayError(INVALID_REQUEST) for a name that is not theirs to use."""
    key = caller.session
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


def _joined(lines: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Every header once: repeated ones are one list."""
    headers: dict[str, str] = {}
    for name, value in lines:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    return headers


def _given(headers: dict[str, str], name: str) -> str | None:
    value = headers.get(name)
    return value.strip() or None if value else None
