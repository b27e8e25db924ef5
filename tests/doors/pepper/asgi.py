"""An ASGI client in the same loop: asks, reads while the answer grows, hangs up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

App = Callable[[Any, Any, Any], Awaitable[None]]


class Exchange:
    """One request and what came of it so far."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.writes: list[bytes] = []
        self.ended = False
        self.readable = asyncio.Event()  # cleared by a test that wants to stall
        self.readable.set()
        self._pieces = pieces
        self._gone = asyncio.Event()
        self._changed = asyncio.Condition()

    @property
    def body(self) -> bytes:
        return b"".join(self.writes)

    def json(self) -> Any:
        return json.loads(self.body)

    def error(self) -> tuple[int, str]:
        return self.status, self.json()["error"]["code"]

    def events(self) -> list[tuple[str, Any]]:
        """The event stream, parsed; comments are left out."""
        found = []
        for frame in self.body.decode().split("\n\n"):
            if frame and not frame.startswith(":"):
                name, data = frame.split("\n")
                found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
        return found

    def hang_up(self) -> None:
        self._gone.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(reached)

    async def receive(self) -> dict[str, Any]:
        if self._pieces:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        await self.readable.wait()
        assert not self.ended, "something was sent after the end"
        if message["type"] == "http.response.start":
            assert self.status == 0, "two status lines"
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            assert self.status, "a body before the status"
            self.writes.append(message.get("body", b""))
            self.ended = not message.get("more_body", False)
        async with self._changed:
            self._changed.notify_all()


def start(
    app: App,
    body: object = None,
    *,
    method: str = "POST",
    path: str = "/agent",
    key: str | None = "chiave",
    project: str | None = "casa",
    raw: bytes | list[bytes] | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[Exchange, asyncio.Task[None]]:
    """Start a request; `raw` instead of `body` for what is not JSON, as a list for a body in pieces."""
    pieces = raw if isinstance(raw, list) else [raw if raw is not None else json.dumps(body).encode()]
    exchange = Exchange(list(pieces))
    named = dict(headers or {})
    if key is not None:
        named["x-pepper-key"] = key
    if project is not None:
        named["x-pepper-project"] = project
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    return exchange, asyncio.ensure_future(_run(app, scope, exchange))


async def _run(app: App, scope: dict[str, Any], exchange: Exchange) -> None:
    await app(scope, exchange.receive, exchange.send)


async def ask(app: App, body: object = None, **how: Any) -> Exchange:
    """The whole exchange."""
    exchange, task = start(app, body, **how)
    await task
    return exchange
