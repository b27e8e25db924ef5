"""A rolling restart: what a server still does between the signal and its end, with nginx in front and without."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.aio import run

from .breeder import Breeder
from .test_nginx import NGINX, behind_nginx
from .turns_rig import THREE, Follower, Rig, session

PARTS = [{"text": "one ", "every_ms": 1}, {"delay_ms": 2000}]
DECLARATION: dict[str, Any] = {
    "engines": [
        {
            "name": "puppet",
            "kind": "scripted",
            "script": [
                {"when": {"after_tool": "phone"}, "say": [*PARTS, {"text": "two"}]},
                {"when": {"after_tool": "write"}, "say": [{"delay_ms": 60_000}]},
                {"when": {"contains": "phone"}, "say": [*PARTS, {"tool": "phone"}]},
                {
                    "when": {"contains": "write"},
                    "say": [{"tool": "write", "arguments": {"path": "/n", "content": "x"}}],
                },
                {"say": [{"text": "hello"}]},
            ],
        }
    ],
    "models": [{"name": "m", "engine": "puppet"}],
}
SETTINGS = """
[gateway.http.endpoints.responses]
enabled = true
[calls]
drain_seconds = {drain}
"""


class Site:
    """A server with one team, asked at `url`: its own address, or that of the nginx before it."""

    def __init__(self, rig: Rig, client: aiohttp.ClientSession, team: str) -> None:
        self.rig = rig
        self.client = client
        self.url = rig.url
        self.team = team
        self.workspace = rig.secrets["workspace_id"]

    async def ask(
        self, method: str, path: str, body: Any = None, *, base: str | None = None, **headers: str
    ) -> aiohttp.ClientResponse:
        headers = self.rig.headers | THREE | {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.client.request(method, (base or self.url) + path, json=body, headers=headers) as answer:
            await answer.read()
            return answer

    async def data(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self.ask(method, f"/api/v1{path}", body)
        assert answer.status < 300, await answer.text()
        return (await answer.json())["data"]

    async def chat(self) -> str:
        made = await self.data("POST", f"/workspaces/{self.workspace}/chats", {"team_id": self.team})
        return str(made["id"])

    async def say(self, chat: str, message: str) -> str:
        answer = await self.to(chat, "messages", {"message": message})
        assert answer.status == 202
        return str((await answer.json())["turn_id"])

    async def to(self, chat: str, what: str, body: Any = None) -> aiohttp.ClientResponse:
        return await self.ask("POST", f"/api/v1/atp/v3/chats/{chat}/{what}", body)


class Stream:
    """One connection to a chat's events; `over` once the server has ended it."""

    def __init__(self, site: Site, chat: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.over = False
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self._read(site, chat))

    async def _read(self, site: Site, chat: str) -> None:
        url = f"{site.url}/api/v1/atp/v3/chats/{chat}/events?after=0"
        async with session() as client, client.get(url, headers=site.rig.headers | THREE) as answer:
            assert answer.status == 200
            async for line in answer.content:
                if line.startswith(b"data: "):
                    await self._tell(json.loads(line[6:]))
        self.over = True
        await self._tell(None)

    async def _tell(self, event: dict[str, Any] | None) -> None:
        async with self._news:
            if event is not None:
                self.events.append(event)
            self._news.notify_all()

    async def until(self, kind: str, seconds: float = 15) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            return next((event for event in self.events if event["type"] == kind), None)

        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(lambda: found() is not None or self._task.done())
        event = found()
        assert event is not None, [one["type"] for one in self.events]
        return event

    async def ended(self, seconds: float) -> None:
        await asyncio.wait_for(self._task, seconds)
        assert self.over


@asynccontextmanager
async def site(home: Path, breeder: Breeder, *, drain: float, nginx: bool = False) -> AsyncIterator[Site]:
    home.mkdir(parents=True, exist_ok=True)
    rig = Rig(home, DECLARATION, breeder)
    (home / "crocevia.toml").write_text(SETTINGS.format(drain=drain), encoding="utf-8")
    rig.start()
    async with AsyncExitStack() as stack:
        stack.callback(rig.stop)
        client = await stack.enter_async_context(session())
        await rig.up(client)
        where = Site(rig, client, "")
        if nginx:
            folder = home / "nginx"
            folder.mkdir()
            where.url = f"http://127.0.0.1:{await stack.enter_async_context(behind_nginx(folder, rig.port))}"
        await where.data("POST", "/tools", {"name": "phone", "parameters": {"type": "object"}})
        agent = {
            "name": "clerk",
            "system_prompt": "Be useful.",
            "mode": "primary",
            "tools_enabled": [{"name": "write"}],
            "external_tools_enabled": [{"name": "phone"}],
            "permissions": {"write": "ask"},
            "model": "m",
        }
        made = await where.data("POST", "/agents", agent)
        where.team = (await where.data("POST", "/teams", {"name": "t", "orchestrator_id": made["id"]}))["id"]
        yield where


async def signalled(place: Site, number: int) -> float:
    """The moment of the signal; the server has seen it when this returns."""
    at = time.monotonic()
    place.rig.signal(number)
    async with asyncio.timeout(2):
        while (answer := await place.ask("GET", "/up")).status != 503:
            assert answer.status == 200
    return at


async def exited(place: Site) -> tuple[int, float]:
    """The exit status, and when."""
    status = await asyncio.to_thread(place.rig.wait)
    return status, time.monotonic()


def check_quiet(place: Site) -> None:
    said = place.rig.said
    assert "Traceback" not in said and "xception" not in said and "[error" not in said, said


async def check_refused(place: Site, idle: str) -> None:
    """What would begin something new."""
    answer = await place.to(idle, "messages", {"message": "hi"})
    assert (answer.status, (await answer.json())["error"]["code"]) == (503, "gateway_draining")
    assert int(answer.headers["retry-after"]) >= 1
    token = f"Bearer {place.rig.secrets['operator_token']}"
    project = {"x_pepper_key": place.rig.secrets["project_key"], "x_pepper_project": place.rig.secrets["project"]}
    for path, body, headers in (
        ("/v1/responses", {"model": "openclaw", "input": "hi"}, {"authorization": token}),
        (
            "/v1/chat/completions",
            {"model": "openclaw", "messages": [{"role": "user", "content": "x"}]},
            {"authorization": token},
        ),
        ("/agent", {"messages": [{"role": "user", "content": "hi"}]}, project),
    ):
        base = (
            place.rig.url if path.startswith("/v1") else None
        )  # a proxy and its client on one address tell nobody apart
        answer = await place.ask("POST", path, body, base=base, **headers)
        assert answer.status == 503, (path, await answer.text())
        assert int(answer.headers["retry-after"]) >= 1, path
    assert (await place.ask("GET", "/up")).status == 503


def kept_connection(port: int) -> socket.socket:
    """A connection that has had an answer and stays open."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    assert status_of(sock, "/up") == (200, False)
    return sock


def status_of(sock: socket.socket, path: str) -> tuple[int, bool]:
    """The status, and whether the server says that it will close."""
    sock.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    answer = sock.recv(65_536).lower()
    return int(answer.split()[1]), b"connection: close" in answer


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("nginx", [False, True])
def test_a_turn_under_way_ends_as_if_nobody_had_stopped_the_server(
    tmp_path: Path, breeder: Breeder, nginx: bool
) -> None:
    if nginx and NGINX is None:
        pytest.skip("nginx is not installed")

    async def work() -> None:
        async with site(tmp_path / "home", breeder, drain=15, nginx=nginx) as place:
            chat, other, idle = await place.chat(), await place.chat(), await place.chat()
            readers, resting = [Stream(place, chat), Stream(place, chat)], Stream(place, idle)
            asking = Stream(place, other)
            await resting.until("ping")
            turn = await place.say(chat, "phone home")
            await place.say(other, "write it")
            approval = (await asking.until("approval.request"))["data"]["approval_id"]
            call = (await readers[0].until("agent.tool.request"))["data"]["call_id"]
            kept = await asyncio.to_thread(kept_connection, place.rig.port)

            at = await signalled(place, signal.SIGTERM)
            await resting.ended(1.5)
            await check_refused(place, idle)
            assert await asyncio.to_thread(status_of, kept, "/up") == (503, True)
            kept.close()
            assert (await place.ask("GET", "/api/v1/atp/v3/capabilities")).status == 200
            late = Stream(place, chat)
            await late.until("agent.tool.request")
            claim = {"call_id": call, "holder": "runner"}
            assert (await place.to(chat, "tool-claim", claim)).status == 204
            assert (await place.to(chat, "steer", {"text": "be brief"})).status == 202
            assert (await place.to(chat, "tool-output", {"call_id": call, "output": "rang"})).status == 204
            assert (await place.to(chat, "tool-output", {"call_id": call, "output": "rang"})).status == 409
            assert (await place.to(other, "approval", {"approval_id": approval, "approve": True})).status == 204
            await asking.until("agent.tool.complete")
            assert (await place.to(other, "cancel")).status == 202
            await asking.until("turn.cancelled")
            await asking.ended(2)
            for reader in (*readers, late):
                assert (await reader.until("turn.completed"))["turn_id"] == turn
                await reader.ended(2)
                assert sum(one["type"] == "agent.tool.request" for one in reader.events) == 1
                assert sum(one["type"] == "agent.tool.result" for one in reader.events) == 1
            ended = time.monotonic()
            status, gone = await exited(place)
            assert status == 0
            assert gone - at >= 5 and gone - max(ended, at + 5) < 3
            check_quiet(place)

    run(work(), timeout=200)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_turn_that_outlives_the_grace_stops_and_the_next_process_completes_it(
    tmp_path: Path, breeder: Breeder
) -> None:
    async def work() -> None:
        async with site(tmp_path / "home", breeder, drain=1) as place:
            chat = await place.chat()
            follower = Follower(place.rig, place.client, chat)
            reading = asyncio.create_task(follower.run())
            streams = [Stream(place, chat), Stream(place, chat)]
            turn = await place.say(chat, "phone home")
            call = (await streams[0].until("agent.tool.request"))["data"]["call_id"]
            assert (await place.to(chat, "tool-output", {"call_id": call, "output": "rang"})).status == 204
            at = await signalled(place, signal.SIGTERM)
            status, gone = await exited(place)
            assert status == 0 and gone - at < 1 + 2
            for stream in streams:
                await stream.ended(1)
                assert not any(one["type"] in ("turn.completed", "turn.failed") for one in stream.events)
            check_quiet(place)
            place.rig.start()
            await place.rig.up(place.client)
            assert (await asyncio.wait_for(follower.terminal(turn), 20))["type"] == "turn.completed"
            assert sum(one["type"] == "agent.tool.request" for one in follower.events) == 1
            assert sum(one["type"] == "agent.tool.result" for one in follower.events) == 1
            reading.cancel()

    run(work(), timeout=200)


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("number", "least", "most"), [(signal.SIGTERM, 5, 7), (signal.SIGINT, 0, 2)])
def test_with_nothing_under_way_a_server_lingers_for_proxies_and_not_for_a_keyboard(
    tmp_path: Path, breeder: Breeder, number: int, least: float, most: float
) -> None:
    async def work() -> None:
        async with site(tmp_path / "home", breeder, drain=15) as place:
            resting = Stream(place, await place.chat())
            await resting.until("ping")
            at = time.monotonic()
            place.rig.signal(number)
            await resting.ended(1)
            while least and time.monotonic() - at < least - 0.5:
                assert (await place.ask("GET", "/up")).status == 503
                await asyncio.sleep(0.2)  # time is what is tested
            status, gone = await exited(place)
            assert status == 0 and least <= gone - at < most
            check_quiet(place)

    run(work(), timeout=200)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_who_sends_a_body_slowly_or_reads_nothing_does_not_keep_a_server(tmp_path: Path, breeder: Breeder) -> None:
    async def work() -> None:
        async with site(tmp_path / "home", breeder, drain=1) as place:
            head = f"host: x\r\nauthorization: {place.rig.headers['authorization']}\r\n"
            slow = []
            for path in ("/api/v1/agents", f"/api/v1/workspaces/{place.workspace}/chats", "/agent", "/v1/responses"):
                sock = socket.create_connection(("127.0.0.1", place.rig.port), timeout=10)
                sock.sendall(f"POST {path} HTTP/1.1\r\n{head}content-length: 1000\r\n\r\n{{".encode())
                slow.append(sock)
            at = await signalled(place, signal.SIGTERM)
            status, gone = await exited(place)
            assert status == 0 and gone - at < 1 + 2
            for sock in slow:
                sock.close()
            check_quiet(place)

    run(work(), timeout=200)
