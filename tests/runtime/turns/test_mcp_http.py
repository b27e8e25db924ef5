"""MCP servers behind an address: a real one on a loopback port, that fails, is slow, says too much, dies, redirects."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crocevia.config import Settings, TurnsSettings
from crocevia.core.mcp import McpServer
from crocevia.runtime.turns.tools import mcp_servers
from crocevia.runtime.turns.tools.registry import MAX_RESULT
from tests.live import free_port

from .theatre import Theatre, Watcher, play, tool

pytest.importorskip("mcp")
CALLS: dict[str, dict[str, Any]] = {
    "add": {"a": 2, "b": 3},
    "fail": {},
    "wait": {},
    "shout": {"length": 3_000_000},
    "die": {},
}
SCRIPT: dict[str, Any] = {
    "main": [
        {"when": {"after_tool": True}, "say": [{"text": "So."}]},
        *(
            {"when": {"contains": name}, "say": [{"tool": f"mcp_calc_{name}", "arguments": arguments}]}
            for name, arguments in CALLS.items()
        ),
        {"say": [{"text": "Hello."}]},
    ]
}
AGENT = {"main": {"tools_enabled": tool("mcp:calc")}}


class Server:
    """A child process; the same port after it was started again."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.stop()
        script = Path(__file__).with_name("mcp_child.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 40
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)  # another process: there is nothing to wait for
        raise AssertionError("it did not come up")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    server.start()
    yield server
    server.stop()


def settings(url: str, **turns: Any) -> Settings:
    return Settings(mcp={"calc": McpServer(url=url, start_seconds=20)}, turns=TurnsSettings(**turns))


async def used(place: Theatre, watcher: Watcher, chat: str, name: str) -> tuple[Any, bool]:
    """What a tool gave in a turn that came to a good end."""
    turn = await place.say(chat, name)
    assert (await watcher.end(turn, timeout=60))["type"] == "turn.completed"
    (done,) = [event for event in watcher.all("agent.tool.complete") if event["turn_id"] == turn]
    return done["data"]["result"], done["data"]["is_error"]


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_server_may_fail_be_slow_say_too_much_and_die_and_every_turn_comes_to_its_end(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_servers, "_FRESH", 0.0)

    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        result, is_error = await used(place, watcher, chat, "add")
        assert not is_error and "5" in str(result)
        result, is_error = await used(place, watcher, chat, "fail")
        assert is_error
        result, is_error = await used(place, watcher, chat, "wait")
        assert is_error and result["code"] == "tool_timeout"
        result, is_error = await used(place, watcher, chat, "shout")
        assert len(str(result)) < MAX_RESULT + 100
        assert not (await used(place, watcher, chat, "add"))[1]
        assert (await used(place, watcher, chat, "die"))[1]
        refused = await place.post(chat, "messages", {"message": "add"})
        assert (refused.status, refused.json["error"]["message"].count("calc")) == (503, 1)
        server.start()
        result, is_error = await used(place, watcher, chat, "add")
        assert not is_error and "5" in str(result)

    play(SCRIPT, work, timeout=140, agents=AGENT, settings=settings(server.url, tool_seconds=1.5))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_cancel_does_not_wait_for_a_slow_server(server: Server) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)
        turn = await place.say(chat, "wait")
        await watcher.until("agent.tool.start", timeout=40)
        assert (await place.post(chat, "cancel")).status == 202
        assert (await watcher.end(turn))["type"] == "turn.cancelled"
        assert not (await used(place, watcher, chat, "add"))[1]

    play(SCRIPT, work, timeout=110, agents=AGENT, settings=settings(server.url))


@contextmanager
def web(answer: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.timeout(90)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_server_that_sends_elsewhere_is_not_followed(status: int) -> None:
    asked: list[str] = []

    class Inside(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_GET = do_POST

        def log_message(self, *_: Any) -> None: ...

    with web(Inside) as inside:

        class Sending(Inside):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", "0")))
                self.send_response(status)
                self.send_header("location", inside)
                self.send_header("content-length", "0")
                self.end_headers()

            do_GET = do_POST

        async def work(place: Theatre) -> None:
            chat = await place.chat()
            refused = await place.post(chat, "messages", {"message": "add"})
            assert refused.status == 503 and "calc" in refused.json["error"]["message"]

        with web(Sending) as url:
            play(SCRIPT, work, timeout=80, agents=AGENT, settings=settings(url))
    assert asked == []
