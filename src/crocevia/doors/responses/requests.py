"""Small things that every endpoint does with a request."""

from __future__ import annotations

from urllib.parse import parse_qs

from crocevia.asgi.body import read_body
from crocevia.asgi.stream import EventStream
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core.errors import GatewayError, MethodNotAllowed, Reason
from crocevia.doors.responses.head import Head
from crocevia.doors.responses.plan import Desk


async def body_of(desk: Desk, asked: Head, receive: Receive) -> bytes:
    """The body. Raises GatewayError(TOO_LARGE), ClientGone."""
    return await read_body(receive, desk.max_body, asked.length)


def check_method(scope: Scope, *allowed: str) -> str:
    """The method. Raises GatewayError(METHOD_NOT_ALLOWED)."""
    method: str = scope["method"]
    if method not in allowed:
        raise MethodNotAllowed(", ".join(allowed))
    return method


def answering(send: Send, ping_seconds: float) -> EventStream:
    """A stream of answers: the connection is closed after it, for clients that read until there is nothing more."""
    return EventStream(send, ping_seconds, lambda: [(b"connection", b"close")])


def query(scope: Scope) -> dict[str, str]:
    """The last value of each parameter."""
    text: bytes = scope.get("query_string", b"")
    return {name: values[-1] for name, values in parse_qs(text.decode("latin-1"), max_num_fields=50).items()}


def number(params: dict[str, str], name: str, default: int, least: int, most: int) -> int:
    """A whole number of the query. Raises GatewayError(INVALID_REQUEST)."""
    text = params.get(name)
    if text is None:
        return default
    if not text.lstrip("-").isdigit() or not least <= int(text) <= most:
        raise GatewayError(Reason.NUMBER_WITHIN, param=name, path=name, least=least, most=most)
    return int(text)
