"""The site: exact paths to plain ASGI applications, and a health page. Everything else is a JSON 404."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from crocevia.asgi.answers import reply
from crocevia.asgi.types import SOCKETS, Application, Receive, Scope, Send
from crocevia.core import json
from crocevia.core.errors import Reason, say
from crocevia.core.texts import render

_READS: Final = frozenset({"GET", "HEAD"})


def application_of(routes: Mapping[str, Application], scope: Scope) -> Application:
    """The application of a request's path, or of a socket's; where there is none, one that says so.

    An address that ends with a slash takes everything below it.
    """
    path = scope["path"]
    if scope["type"] == "http":
        return routes.get(path) or _below(routes, path)
    return routes.get(SOCKETS + path, refused)


def _below(routes: Mapping[str, Application], path: str) -> Application:
    holders = (route for route in routes if route.endswith("/") and path.startswith(route))
    return routes.get(max(holders, key=len, default=""), missing)


async def refused(scope: Scope, receive: Receive, send: Send) -> None:
    """A socket where there is none."""
    await send({"type": "websocket.close", "code": 1008})


async def missing(scope: Scope, receive: Receive, send: Send) -> None:
    """An address that nobody has."""
    await reply(send, 404, _failure(Reason.NOT_FOUND), ())


def health(ready: Callable[[], bool]) -> Application:
    """`/up`: 200 while calls are admitted, else 503."""

    async def up(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in _READS:
            await reply(send, 405, _failure(Reason.METHOD_NOT_ALLOWED, allowed="GET"), [(b"allow", b"GET, HEAD")])
        elif ready():
            await reply(send, 200, json.encode({"status": "ok"}), ())
        else:
            await reply(send, 503, json.encode({"status": "unavailable"}), [(b"retry-after", b"1")])

    return up


def _failure(reason: Reason, **details: str) -> bytes:
    return json.encode({"error": {"code": reason.code.value, "message": render(say(reason, **details), "en")}})
