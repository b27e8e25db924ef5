"""A server that is killed and started again on one home and port, and a client that does not mind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import tomli_w

from tests.live import crocevia, free_port

from .breeder import Breeder

THREE = {"x-envai-contract-version": "3"}
TERMINALS = ("turn.completed", "turn.cancelled", "turn.failed")
GONE = (aiohttp.ClientError, OSError, asyncio.TimeoutError)


class Rig:
    """secrets: what init printed. starts: how often the server was started."""

    def __init__(self, home: Path, declaration: dict[str, Any], breeder: Breeder) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.starts = 0
        self.secrets: dict[str, Any] = json.loads(crocevia("init", "--json", home=home))
        file = home / "declared-by-test.toml"
        file.write_text(tomli_w.dumps(declaration), encoding="utf-8")
        crocevia("apply", str(file), home=home)
        self._breeder = breeder
        self._pid = 0
        self.headers = {"authorization": f"Bearer {self.secrets['api_key']}"}

    def start(self) -> None:
        self.starts += 1
        arguments = ["serve", "--home", str(self.home), "--port", str(self.port)]
        self._pid = self._breeder.start(arguments, self.home / "serve.log")

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        if self._pid:
            self._signal(signal.SIGINT)
        assert "Traceback" not in self.said

    def _signal(self, number: int) -> None:
        self.signal(number)
        self.wait()

    def signal(self, number: int) -> None:
        assert self._pid
        os.kill(self._pid, number)

    def wait(self) -> int:
        """The exit status, once the process has ended."""
        pid, self._pid = self._pid, 0
        return os.waitstatus_to_exitcode(self._breeder.wait(pid))

    @property
    def said(self) -> str:
        return (self.home / "serve.log").read_text(encoding="utf-8", errors="replace")

    async def up(self, client: aiohttp.ClientSession, timeout: float = 40) -> None:
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            with contextlib.suppress(*GONE):
                async with client.get(f"{self.url}/up") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.02)  # another process: there is nothing to wait for
        raise AssertionError(f"the server did not come up\n{self.said}")

    async def call(
        self, client: aiohttp.ClientSession, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """One request, again until it is answered."""
        while True:
            try:
                async with client.request(
                    method, f"{self.url}/api/v1{path}", json=body, headers=self.headers | THREE | headers
                ) as answer:
                    text = await answer.text()
                    if answer.status not in (502, 503):
                        return answer.status, json.loads(text) if text else None
            except GONE:
                pass
            await asyncio.sleep(0.02)  # another process: there is nothing to wait for

    async def chat(self, client: aiohttp.ClientSession, team: str) -> str:
        _, listed = await self.call(client, "GET", "/teams")
        team_id = next(item["id"] for item in listed["data"] if item["name"] == team)
        where = f"/workspaces/{self.secrets['workspace_id']}/chats"
        _, made = await self.call(client, "POST", where, {"team_id": team_id})
        chat_id: str = made["data"]["id"]
        return chat_id


class Follower:
    """Reads a chat over any number of connections; keeps every event in order, and checks the order."""

    def __init__(self, rig: Rig, client: aiohttp.ClientSession, chat: str) -> None:
        self.rig = rig
        self.client = client
        self.chat = chat
        self.events: list[dict[str, Any]] = []
        self.news = asyncio.Event()

    async def run(self) -> None:
        while True:
            with contextlib.suppress(*GONE):
                await self._read()
            await asyncio.sleep(0.02)  # another process: there is nothing to wait for

    async def _read(self) -> None:
        after = self.events[-1]["seq"] if self.events else 0
        url = f"{self.rig.url}/api/v1/atp/v3/chats/{self.chat}/events?after={after}"
        async with self.client.get(url, headers=self.rig.headers | THREE) as answer:
            if answer.status != 200:
                return
            async for line in answer.content:
                if line.startswith(b"data: ") and line.endswith(b"\n"):
                    self._take(json.loads(line[6:]))

    def _take(self, event: dict[str, Any]) -> None:
        if event["seq"]:
            assert event["seq"] == len(self.events) + 1, "a gap or a duplicate"
            self.events.append(event)
            self.news.set()

    async def terminal(self, turn: str) -> dict[str, Any]:
        while True:
            for event in reversed(self.events):
                if event["turn_id"] == turn and event["type"] in TERMINALS:
                    return event
            self.news.clear()
            await self.news.wait()


def session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, connect=5, sock_read=20))


def seeded() -> random.Random:
    """Other moments each time; the seed is printed, so that a failure can be had again."""
    seed = int(os.environ.get("CROCEVIA_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    return random.Random(seed)
