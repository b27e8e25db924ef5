"""A serving home in this process, asked through its ASGI application: everything real but the sockets.

async with house(tmp_path, script=[…]) as home:
    answer = await home.ask("/v1/responses", {"model": "openclaw", "input": "hi"})
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import structlog

from crocevia.app.service import Service, open_service
from crocevia.config import load
from crocevia.runtime.control import init as control
from crocevia.runtime.control.apply import apply
from crocevia.runtime.control.declarations import parse
from crocevia.storage.home import Home
from tests.doors.pepper.asgi import Exchange

ENABLED = "[gateway.http.endpoints.responses]\nenabled = true\n[gateway.http.models]\nexposeCatalog = true\n"
AGENTS = """
[[agents]]
name = "clerk"
mode = "subagent"
model = "Pepper mini"
system_prompt = "You are a clerk."
"""


@cache
def template() -> tuple[Path, control.Initialised]:
    """An initialised home, made once per process and copied for each test."""
    home = Home(Path(mkdtemp(prefix="crocevia-test-")))
    made = control.init(home, "http://127.0.0.1")
    return home.path, made


class Answer:
    """What came back."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.status = exchange.status
        self.headers = exchange.headers
        self.body = exchange.body

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json()["error"]
        return found

    def events(self) -> list[dict[str, Any]]:
        """The events; their framing is checked on the way."""
        return events(self.body)


def events(body: bytes) -> list[dict[str, Any]]:
    assert b"\r" not in body
    frames = [frame for frame in body.decode().split("\n\n") if frame and not frame.startswith(":")]
    assert frames[-1] == "data: [DONE]", frames[-1][:200]
    found = []
    for frame in frames[:-1]:
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found


def text_of(resource: dict[str, Any]) -> str:
    return "".join(part["text"] for item in resource["output"] if item["type"] == "message" for part in item["content"])


class House:
    def __init__(self, service: Service, secrets: control.Initialised) -> None:
        self.service = service
        self.secrets = secrets

    def start(
        self,
        path: str,
        body: object = None,
        *,
        method: str = "POST",
        token: str | None = "",
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
        peer: str = "127.0.0.1",
    ) -> tuple[Exchange, asyncio.Task[None]]:
        """token "": the operator's own; None: no Authorization at all."""
        named = {"host": "localhost", **(headers or {})}
        if token is not None:
            named["authorization"] = f"Bearer {token or self.secrets.operator_token}"
        bare, _, query = path.partition("?")
        exchange = Exchange([raw if raw is not None else b"" if body is None else json.dumps(body).encode()])
        scope = {
            "type": "http",
            "method": method,
            "path": bare,
            "query_string": query.encode(),
            "client": (peer, 1),
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        }
        work: Awaitable[None] = self.service.site(scope, exchange.receive, exchange.send)
        return exchange, asyncio.ensure_future(work)

    async def ask(self, path: str, body: object = None, **how: Any) -> Answer:
        exchange, task = self.start(path, body, **how)
        await task
        return Answer(exchange)

    async def respond(self, input: object, **fields: Any) -> dict[str, Any]:
        """A whole answer, which must have come about."""
        answer = await self.ask("/v1/responses", {"model": "openclaw", "input": input, **fields})
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json()
        return found

    async def get(self, path: str, **how: Any) -> Answer:
        return await self.ask(path, method="GET", **how)


@asynccontextmanager
async def house(
    folder: Path,
    *,
    script: list[dict[str, Any]] | None = None,
    settings: str = ENABLED,
    engine: dict[str, Any] | None = None,
    declared: str = AGENTS,
    model: dict[str, Any] | None = None,
) -> AsyncIterator[House]:
    """script: of the embedded engine's stand-in. engine, model: other fields of their declarations."""
    source, secrets = template()
    path = folder / "home"
    shutil.copytree(source, path)
    home = Home(path)
    spec = engine or {"kind": "scripted", **({"script": script} if script is not None else {})}
    lines = ["[[engines]]", 'name = "embedded"', *(f"{key} = {toml(value)}" for key, value in spec.items())]
    lines += ["[[models]]", 'name = "Pepper mini"', 'engine = "embedded"']
    lines += [f"{key} = {toml(value)}" for key, value in (model or {}).items()]
    apply(home, parse(("\n".join(lines) + "\n" + declared).encode()))
    home.settings.write_text(settings, encoding="utf-8")
    async with open_service(load(path, environment={}), home, structlog.get_logger()) as service:
        yield House(service, secrets)


@asynccontextmanager
async def again(folder: Path) -> AsyncIterator[House]:
    """The home of an earlier `house`, served again."""
    home = Home(folder / "home")
    async with open_service(load(home.path, environment={}), home, structlog.get_logger()) as service:
        yield House(service, template()[1])


def toml(value: Any) -> str:
    """An inline TOML value."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)
