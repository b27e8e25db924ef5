"""`envai-client` for TypeScript on a live server that is killed under it; skipped where it is not built."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tests.live import LiveServer, clean_env, live_server, wait_until_up

from .test_turns import SCRIPT, chat

SDK = Path(__file__).resolve().parents[3] / "sdk/typescript"
DECLARED = tomli_w.dumps({"engines": [{"name": "embedded", "kind": "scripted", "script": SCRIPT}]})


class Server:
    """A server that can be killed and started again on the same home and port."""

    def __init__(self, running: LiveServer) -> None:
        self.running = running
        self.process = running.process

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=5)

    def start(self) -> None:
        port, home = self.running.url.rpartition(":")[2], self.running.home
        command = [sys.executable, "-m", "crocevia.cli", "serve", "--home", str(home), "--port", port]
        with (home / "again.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=clean_env())
        wait_until_up(self.running.url, self.process, home)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    if not (SDK / "dist/esm/index.js").exists() or shutil.which("node") is None:
        pytest.skip("envai-client for TypeScript is not built here: make test-sdks")
    with live_server(tmp_path / "home", declaration=DECLARED) as running:
        server = Server(running)
        yield server
        with suppress(ProcessLookupError):
            server.process.kill()
            server.process.wait(timeout=5)


@contextmanager
def program(server: Server, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    environment = clean_env() | {
        "ENVAI_BASE_URL": server.running.url,
        "ENVAI_API_KEY": str(server.running.secrets["api_key"]),
    }
    command = ["node", str(SDK / "tests/live.mjs"), *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read(process: subprocess.Popen[str], until: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """What the program said, up to the first line that is `until`; fails with its errors if it ends before."""
    said: list[dict[str, Any]] = []
    assert process.stdout is not None and process.stderr is not None
    while line := process.stdout.readline():
        said.append(json.loads(line))
        if until(said[-1]):
            return said
    pytest.fail(f"the program ended: {said[-3:]} {process.stderr.read()[-3000:]}")


@pytest.mark.clients
@pytest.mark.timeout(120)
def test_a_turn_goes_on_through_a_killed_server_and_no_event_is_missing_or_twice(server: Server) -> None:
    with program(server, chat(server.running)) as process:
        said = read(process, lambda line: line.get("type") == "agent.text.delta")
        server.kill()
        server.start()
        said += read(process, lambda line: "text" in line)
    numbers = [line["seq"] for line in said if "seq" in line]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert said[-1]["text"] == "one two three four five six seven eight nine ten"
    assert said[-1]["reconnects"] >= 1
