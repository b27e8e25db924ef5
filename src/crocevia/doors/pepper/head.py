"""The headers of a request that say who asks."""

from __future__ import annotations

from typing import NamedTuple

from crocevia.asgi.types import Scope
from crocevia.core.errors import GatewayError, MethodNotAllowed, Reason
from crocevia.doors.pepper import wire


class Head(NamedTuple):
    """key: never empty. project: as the header names it, or empty. length: the declared size of the body.

    asks: the caller waits to be told before it sends one (`Expect: 100-continue`).
    """

    key: bytes
    project: str
    length: int | None
    asks: bool = False


def read_head(scope: Scope, *methods: str) -> Head:
    """Raises GatewayError: METHOD_NOT_ALLOWED unless the method is one of `methods`, UNAUTHENTICATED without a key."""
    if scope["method"] not in methods:
        raise MethodNotAllowed(", ".join(methods))
    key = project = length = expect = b""
    for name, value in scope["headers"]:
        if name == wire.KEY_HEADER:
            key = value
        elif name == wire.PROJECT_HEADER:
            project = value
        elif name == b"content-length":
            length = value
        elif name == b"expect":
            expect = value
    if not key.strip():
        raise GatewayError(Reason.UNAUTHENTICATED)
    asks = expect.lower() == b"100-continue"
    return Head(key.strip(), _text(project), int(length) if length.isdigit() else None, asks)


def _text(value: bytes) -> str:
    try:
        return value.decode().strip()
    except UnicodeDecodeError:
        return value.decode("latin-1").strip()
