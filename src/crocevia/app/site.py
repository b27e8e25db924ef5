"""The site: exact paths to plain ASGI applications, and a health page. Everything else is a JSON 404."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias

from crocevia.core import json
from crocevia.core.errors import Code, Message
from crocevia.core.texts import render

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

SOCKETS: Final = "ws:"  # what the address of a WebSocket begins with among the routes
_READS: Final = frozenset({"GET", "HEAD"})


async def dispatch(routes: Mapping[str, Application], scope: Scope, receive: Receive, send: Send) -> None:
    """Hand an HTTP request to the application of its path; other kinds of connection are refused.

    An address that ends with a slash takes everything below it.
    """
    if scope["type"] == "http":
        path = scope["path"]
        await (routes.get(path) or _below(routes, path))(scope, receive, send)
    elif scope["type"] == "websocket":
        await routes.get(SOCKETS + scope["path"], refused)(scope, receive, send)


def _below(routes: Mapping[str, Application], path: str) -> Application:
    holders = (route for route in routes if route.endswith("/") and path.startswith(route))
    return routes.get(max(holders, key=len, default=""), missing)


async def refused(scope: Scope, receive: Receive, send: Send) -> None:
    """A socket where there is none."""
    await send({"type": "websocket.close", "code": 1008})


async def missing(scope: Scope, receive: Receive, send: Send) -> None:
    """An address that nobody has."""
    await answer(send, 404, _failure(Code.NOT_FOUND))


def health(ready: Callable[[], bool]) -> Application:
    """`/up`: 200 while calls are admitted, else 503."""

    async def up(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in _READS:
            await answer(send, 405, _failure(Code.METHOD_NOT_ALLOWED, allowed="GET"), (b"allow", b"GET, HEAD"))
        elif ready():
            await answer(send, 200, {"status": "ok"})
        else:
            await answer(send, 503, {"status": "unavailable"}, (b"retry-after", b"1"))

    return up


async def answer(send: Send, status: int, content: object, *headers: tuple[bytes, bytes]) -> None:
    """One JSON answer."""
    body = json.encode(content)
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(body)),
                (b"cache-control", b"no-store"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


def _failure(code: Code, **args: str | int | float | Message) -> dict[str, dict[str, str]]:
    return {"error": {"code": code.value, "message": render(Message(code.value, args), "en")}}
