"""A whole server in this loop, without sockets: a team whose models are scripted, and readers of its chats."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from crocevia.app.service import Service, open_service
from crocevia.config import Settings
from crocevia.core.catalogue import AgentSpec, EngineSpec, ModelSpec, Prices, TeamSpec
from crocevia.runtime.control.init import Initialised
from crocevia.storage import agents as agent_rows
from crocevia.storage import declared, meta, teams
from crocevia.storage.database import Transaction, immediate
from crocevia.storage.home import Home
from tests.doors.atp.contract import check_answer, operation_of
from tests.doors.atp.house import THREE, VERSION, Reply, _initialised, exchange
from tests.doors.atp.schema import Event


class Log:
    """Swallows what a server says, and keeps the kinds of its complaints."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, dict[str, Any]]] = []

    def info(self, *_: Any, **__: Any) -> None: ...
    def warning(self, *_: Any, **__: Any) -> None: ...
    def error(self, message: str, **fields: Any) -> None:
        self.errors.append((message, fields))


@dataclass
class Watcher:
    """A reader of one chat's stream. events: all but the pings."""

    version: int
    events: list[Event] = field(default_factory=list)
    pings: int = 0
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytearray = field(default_factory=bytearray)
    ended: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _buffer: bytes = b""
    _leave: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, data: bytes) -> None:
        self.raw += data
        *frames, self._buffer = (self._buffer + data).split(b"\n\n")
        for frame in frames:
            lines = frame.split(b"\n")
            (line,) = [line for line in lines if line.startswith(b"data: ")]
            assert not any(line.startswith(b":") for line in lines)
            event = json.loads(line[6:])
            assert event["v"] == self.version
            if event["type"] == "ping":
                self.pings += 1
            else:
                assert event["seq"] == (self.events[-1]["seq"] + 1 if self.events else event["seq"])
                assert not self.events or event["ts"] >= self.events[-1]["ts"], "time goes backwards"
                assert f"id: {self.headers['x-envai-stream-epoch']}:{event['seq']}".encode() in lines
                self.events.append(event)
        self._news.set()

    async def until(self, wanted: Callable[[Event], bool] | str, timeout: float = 8) -> Event:
        """The first event, from the beginning, that is wanted (a type, or a condition)."""
        match = (lambda event: event["type"] == wanted) if isinstance(wanted, str) else wanted
        try:
            async with asyncio.timeout(timeout):
                while True:
                    for event in self.events:
                        if match(event):
                            return event
                    assert not self.ended, f"the stream ended: {self.types}"
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"not seen: {wanted}; seen: {self.types}") from None

    async def pinged(self, timeout: float = 5) -> None:
        async with asyncio.timeout(timeout):
            while not self.pings:
                self._news.clear()
                await self._news.wait()

    async def end(self, turn_id: str | None = None, timeout: float = 10) -> Event:
        """The terminal of a turn."""
        return await self.until(
            lambda event: event["type"] in TERMINALS and turn_id in (None, event["turn_id"]), timeout
        )

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def all(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["type"] == kind]

    def text(self, name: str) -> str:
        return "".join(
            event["data"]["delta"] for event in self.all("agent.text.delta") if event["agent"]["name"] == name
        )


def check_contract(method: str, path: str, reply: Reply) -> None:
    """Assert that an answer is one that the official contract allows, where it knows the operation."""
    version = 2 if reply.all(VERSION) == ["2"] else 3
    address = path.partition("?")[0].removeprefix("/api/v1")
    if operation_of(method, address, version) is not None and "json" in "".join(reply.all("content-type")):
        check_answer(method, address, reply.status, reply.json, version)


TERMINALS = ("turn.completed", "turn.cancelled", "turn.failed")


class Theatre:
    """service: the server of this moment; `reopen` replaces it on the same home."""

    def __init__(self, home: Home, made: Initialised, settings: Settings) -> None:
        self.home = home
        self.made = made
        self.settings = settings
        self.log = Log()
        self.service: Service
        self._opening: Any = None
        self._watching: list[asyncio.Task[Any]] = []

    async def open(self) -> None:
        self._opening = open_service(self.settings, self.home, self.log)
        self.service = await self._opening.__aenter__()

    async def close(self) -> None:
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        self._watching.clear()
        await self._opening.__aexit__(None, None, None)

    async def reopen(self) -> None:
        await self.close()
        await self.open()

    async def reopen_after_kill(self) -> None:
        """As `reopen`, on what the disk holds at this moment: whatever closing would write never happened."""
        left = self.home.path / "left.db"
        with closing(sqlite3.connect(self.home.database)) as now, closing(sqlite3.connect(left)) as copy:
            now.backup(copy)
        await self.close()
        for ending in ("-wal", "-shm"):
            Path(f"{self.home.database}{ending}").unlink(missing_ok=True)
        left.replace(self.home.database)
        await self.open()

    async def door(self, scope: Any, receive: Any, send: Any) -> None:
        await self.service.site(scope, receive, send)

    async def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = {}, key: str | None = None
    ) -> Reply:
        scope, pieces = self._scope(method, path, body, headers, key)
        reply: Reply = await exchange(self.door, scope, pieces)
        check_contract(method, path, reply)
        return reply

    async def post(self, chat: str, what: str, body: Any = None, *, version: int = 3, **headers: str) -> Reply:
        """A request of the execution plane."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        if version == 3:
            return await self.call("POST", f"/api/v1/atp/v3/chats/{chat}/{what}", body, THREE | names)
        return await self.call("POST", f"/api/v1/chats/{chat}/{what}", body, names)

    async def say(self, chat: str, message: str, *, version: int = 3, **headers: str) -> str:
        reply = await self.post(chat, "messages", {"message": message}, version=version, **headers)
        assert reply.status == 202, reply.raw
        turn_id: str = reply.json["turn_id"]
        return turn_id

    async def chat(self, team: str = "cast", workspace: str | None = None) -> str:
        listed = (await self.call("GET", "/api/v1/teams")).data
        team_id = next(item["id"] for item in listed if item["name"] == team)
        where = workspace or self.made.workspace_id
        reply = await self.call("POST", f"/api/v1/workspaces/{where}/chats", {"team_id": team_id})
        assert reply.status == 201, reply.raw
        chat_id: str = reply.data["id"]
        return chat_id

    async def watch(
        self, chat: str, after: int | None = 0, *, version: int = 3, headers: Mapping[str, str] = {}, query: str = ""
    ) -> Watcher:
        """Open the chat's stream; returns once its status is known."""
        prefix = "/api/v1/atp/v3/chats" if version == 3 else "/api/v1/chats"
        path = f"{prefix}/{chat}/events?{'' if after is None else f'after={after}'}{query}"
        negotiated = THREE if version == 3 else {}
        scope, _ = self._scope("GET", path, None, {**negotiated, **headers}, None)
        watcher, opened = Watcher(version), asyncio.Event()

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                watcher.status = message["status"]
                watcher.headers = {key.decode(): value.decode() for key, value in message["headers"]}
                opened.set()
            elif watcher.status == 200:
                watcher.take(message.get("body", b""))
                watcher.ended = not message.get("more_body", False)
                watcher._news.set()
            else:
                watcher.raw += message.get("body", b"")

        first = True

        async def receive() -> dict[str, Any]:
            nonlocal first
            if first:
                first = False
                return {"type": "http.request", "body": b"", "more_body": False}
            await watcher._leave.wait()
            return {"type": "http.disconnect"}

        task = asyncio.create_task(self.door(scope, receive, send))
        self._watching.append(task)
        async with asyncio.timeout(5):
            await opened.wait()
            if watcher.status != 200:
                await task
        return watcher

    async def play(self, message: str = "go", team: str = "cast", timeout: float = 10) -> Watcher:
        """One turn in a chat of its own, from its first event to its terminal."""
        chat = await self.chat(team)
        watcher = await self.watch(chat)
        await self.say(chat, message)
        await watcher.end(timeout=timeout)
        return watcher

    def _scope(
        self, method: str, path: str, body: Any, headers: Mapping[str, str], key: str | None
    ) -> tuple[dict[str, Any], list[bytes]]:
        pieces = [] if body is None else [body if isinstance(body, bytes) else json.dumps(body).encode()]
        lines = {"authorization": f"Bearer {key or self.made.api_key}", **headers}
        if pieces:
            lines["content-length"] = str(len(pieces[0]))
        target, _, query = path.partition("?")
        return {
            "type": "http",
            "method": method,
            "path": target,
            "raw_path": target.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in lines.items()],
        }, pieces


Script = Sequence[dict[str, Any]]


def prepare(
    home: Home, user: str, scripts: Mapping[str, Script], changes: Mapping[str, Mapping[str, Any]], **model: Any
) -> None:
    """One engine, model and agent per script; the first leads the team `cast`, with all others as its members."""
    names = list(scripts)
    with immediate(home.database) as tx:
        for name, script in scripts.items():
            declared.save(tx, EngineSpec(name=f"e-{name}", kind="scripted", script=list(script)), 0.0)
            declared.save(tx, ModelSpec(name=f"m-{name}", engine=f"e-{name}", **model), 0.0)
            mode = "primary" if name == names[0] else "subagent"
            agent_rows.declare(tx, user, AgentSpec(name=name, mode=mode, model=f"m-{name}", system_prompt="Act."), 0.0)
            change_agent(tx, user, name, changes.get(name, {}))
        teams.declare(tx, user, TeamSpec(name="cast", orchestrator=names[0], members=tuple(names[1:])), 0.0)
        meta.bump_revision(tx)


def change_agent(tx: Transaction, user: str, name: str, changes: Mapping[str, Any]) -> None:
    which = agent_rows.find_named(tx, user, name)
    assert which is not None
    agent = agent_rows.find(tx, user, which)
    assert agent is not None
    agent_rows.save(tx, msgspec.structs.replace(agent, **changes))


@asynccontextmanager
async def theatre(
    scripts: Mapping[str, Script],
    *,
    agents: Mapping[str, Mapping[str, Any]] = {},
    settings: Settings | None = None,
    window: int | None = None,
    prices: Prices | None = None,
    clean: bool = True,
) -> AsyncIterator[Theatre]:
    """agents: columns of an agent's row by its name. window, prices: of every model. clean: it must not complain."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        copies, made = _initialised()
        for name, content in copies:
            (home.path / name).parent.mkdir(parents=True, exist_ok=True)
            (home.path / name).write_bytes(content)
        prepare(home, made.user_id, scripts, agents, context_window=window, prices=prices)
        place = Theatre(home, made, settings or Settings())
        await place.open()
        try:
            yield place
        finally:
            await place.close()
        if clean:
            assert place.log.errors == []


def play(
    scripts: Mapping[str, Script],
    work: Callable[[Theatre], Any],
    *,
    timeout: float = 20,
    **options: Any,
) -> Any:
    """Run `work(theatre)` to its end."""

    async def bounded() -> Any:
        async with asyncio.timeout(timeout), theatre(scripts, **options) as place:
            return await work(place)

    return asyncio.run(bounded())


def tool(*names: str) -> list[dict[str, str]]:
    """As an agent's row names its tools."""
    return [{"name": name} for name in names]
