"""What the tests of our own client on a live server share: both clients behind one face, scripts, a proxy that cuts."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from envai_client import AsyncEnvaiClient, EnvaiClient
from tests.aio import run

KINDS = {"sync": EnvaiClient, "async": AsyncEnvaiClient}
NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
SLOW = "one two three four five six seven eight nine ten"
WRITE = {"tool": "write", "arguments": {"path": "/note.txt", "content": "written"}}
SCRIPT: list[dict[str, Any]] = [
    {"when": {"after_tool": "add"}, "say": [{"text": "It is {tool_result}."}]},
    {"when": {"after_tool": "write"}, "say": [{"text": "So: {tool_result}"}]},
    {"when": {"contains": "please add"}, "say": [{"tool": "add", "arguments": {"a": 2, "b": 3}}]},
    {"when": {"contains": "write it"}, "say": [WRITE]},
    {"when": {"contains": "slow"}, "say": [{"text": SLOW, "every_ms": 60}]},
    {"when": {"contains": "louder"}, "say": [{"text": "LOUDER"}]},
    {"when": {"contains": "how long"}, "say": [{"delay_ms": 30_000}, {"text": "long"}]},
    *({"when": {"contains": "how many", "nth": n}, "say": [{"text": f"answer {n}"}]} for n in range(1, 9)),
    {"when": {"contains": "never"}, "say": [{"error": "refused"}]},
    {"say": [{"text": "Hello."}]},
]
DECLARATION: dict[str, Any] = {
    "engines": [{"name": "embedded", "kind": "scripted", "script": SCRIPT}],
    "models": [{"name": "brush", "engine": "embedded", "upstream": "image"}],
}


@dataclass(frozen=True)
class Place:
    """A server with a team that has the client tool `add` and asks before it writes."""

    url: str
    key: str
    workspace: str
    team: str

    def client(self, kind: str, **options: Any) -> Any:
        return KINDS[kind](**{"api_key": self.key, "base_url": self.url} | options)

    def play(self, kind: str, work: Callable[[Any], Awaitable[None]], **options: Any) -> None:
        """Run `work` with a client of this kind. The sync client blocks the loop: nothing else runs on it."""

        async def whole() -> None:
            client = self.client(kind, **options)
            try:
                await work(client)
            finally:
                await now(client.aclose() if kind == "async" else client.close())

        run(whole(), timeout=30)

    def chat(self) -> str:
        with EnvaiClient(api_key=self.key, base_url=self.url) as client:
            return str(client.chats.create(self.workspace, self.team).id)


def furnish(url: str, secrets: dict[str, Any]) -> Place:
    key, workspace = str(secrets["api_key"]), str(secrets["workspace_id"])
    with EnvaiClient(api_key=key, base_url=url) as client:
        client.tools.create("add", NUMBERS, timeout_seconds=60)
        agent = client.agents.create(
            "clerk",
            "Be useful.",
            "primary",
            tools_enabled=[{"name": "write"}],
            external_tools_enabled=[{"name": "add"}],
            permissions={"write": "ask"},
        )
        return Place(url, key, workspace, client.teams.create("office", agent.id).id)


async def now(value: Any) -> Any:
    """What an async method answers when awaited, and a sync one at once."""
    return await value if inspect.isawaitable(value) else value


async def each(source: Any) -> AsyncIterator[Any]:
    """Either kind of iterator."""
    if hasattr(source, "__aiter__"):
        async for item in source:
            yield item
    else:
        for item in source:
            yield item


@asynccontextmanager
async def opened(stream: Any) -> AsyncIterator[Any]:
    """Either kind of stream, closed at the end."""
    try:
        yield stream
    finally:
        await now(stream.close())


async def refused(kind: type[Exception], call: Callable[[], Any]) -> Any:
    """The error that the call ends with."""
    try:
        await now(call())
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was expected")


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """An ASGI application on a port of this process."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started:
            assert not serving.done()
            await asyncio.sleep(0.01)  # uvicorn has no event for it
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


class Proxy:
    """A loopback TCP proxy in threads of its own. `cut` closes every connection that is open, rudely."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.accepted = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self.accepted += 1
                self._pairs.append((near, far))
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(source, sink), daemon=True).start()

    def cut(self) -> None:
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for side in pair:
                with contextlib.suppress(OSError):
                    side.shutdown(socket.SHUT_RDWR)
                side.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
