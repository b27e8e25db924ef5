"""A `crocevia serve` whose model is a script: turns over real sockets, as fast as the script says."""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .processes import OWN_CPUS, SERVER_CPU, cpu_seconds, running, wait_for
from .servers import free_port

_PING = b'"type":"ping"'
_SPEAKERS = 3


def script(words: int, every_ms: int) -> dict[str, Any]:
    """Three agents that speak at once when the message is `speak`, one short answer to all else; slow enough that
    every word is an event of its own.
    """
    ask = [
        {"tool": "delegate_task", "arguments": {"agent": "speaker", "task": f"speak {n}", "mode": "background"}}
        for n in range(_SPEAKERS)
    ]
    scripts = {
        "lead": [
            {"when": {"contains": "speak", "nth": 1}, "say": [{"text": "go"}, *ask]},
            {"say": [{"text": "well"}]},
        ],
        "speaker": [{"say": [{"text": "word " * words, "every_ms": every_ms}]}],
    }
    return {
        "engines": [{"name": f"e-{name}", "kind": "scripted", "script": rules} for name, rules in scripts.items()],
        "models": [{"name": f"m-{name}", "engine": f"e-{name}"} for name in scripts],
        "agents": [
            {"name": "lead", "mode": "primary", "model": "m-lead"},
            {"name": "speaker", "mode": "subagent", "model": "m-speaker"},
        ],
        "teams": [{"name": "bench", "orchestrator": "lead", "members": ["speaker"]}],
    }


@dataclass
class Server:
    """A home and, inside `serving`, the process that serves it."""

    home: Path
    secrets: dict[str, Any]
    port: int
    pid: int = 0
    team: str = ""

    def cpu(self) -> float:
        return cpu_seconds(self.pid)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON. Raises SystemExit for a refusal."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1{path}", sent, self.headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text.decode(errors='replace')}")
        return json.loads(text) if text else None

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.secrets['api_key']}",
            "Content-Type": "application/json",
            "X-Envai-Contract-Version": "3",
        }

    def chat(self) -> str:
        where = f"/workspaces/{self.secrets['workspace_id']}/chats"
        return str(self.ask("POST", where, {"team_id": self.team})["data"]["id"])

    def send(self, chat: str, message: str) -> None:
        self.ask("POST", f"/atp/v3/chats/{chat}/messages", {"message": message})

    def wire(self, method: str, path: str, body: bytes = b"") -> bytes:
        """A request as it is sent."""
        lines = [f"{method} /api/v1{path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body

    def connected(self) -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found


def prepare(folder: Path, declared: dict[str, Any]) -> Server:
    """A home with a declared team, not served yet."""
    import tomli_w

    folder.mkdir(parents=True, exist_ok=True)
    home = folder / "home"
    secrets = json.loads(_command("init", "--json", home=home))
    (home / "crocevia.toml").write_text("[turns]\nchildren = 64\nrounds = 60\n", encoding="utf-8")
    file = folder / "declared.toml"
    file.write_text(tomli_w.dumps(declared), encoding="utf-8")
    _command("apply", str(file), home=home)
    return Server(home, secrets, free_port())


@contextmanager
def serving(server: Server) -> Iterator[float]:
    """Served on one CPU until the block ends; gives the seconds until it was up."""
    command = [sys.executable, "-m", "crocevia.cli", "serve", "--home", str(server.home), "--port", str(server.port)]
    began = time.perf_counter()
    with running(command, cpus=SERVER_CPU, log=server.home / "serve.log", env=_env()) as process:
        wait_for(lambda: process.poll() is not None or _up(server.port), seconds=60)
        took = time.perf_counter() - began
        if process.poll() is not None:
            raise SystemExit((server.home / "serve.log").read_text(errors="replace"))
        server.pid = process.pid
        if not server.team:
            teams = server.ask("GET", "/teams")["data"]
            server.team = next(team["id"] for team in teams if team["name"] == "bench")
        yield took


@contextmanager
def readers(server: Server, chat: str, count: int) -> Iterator[subprocess.Popen[str]]:
    """`bench.readers`, every one of them attached and greeted."""
    path = f"/api/v1/atp/v3/chats/{chat}/events?after=0"
    command = [sys.executable, "-m", "bench.readers", f"--port={server.port}", f"--path={path}", f"--count={count}"]
    with subprocess.Popen(
        [*command, f"--key={server.secrets['api_key']}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, OWN_CPUS),
    ) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise SystemExit("the readers did not come up")
            yield process
        finally:
            process.kill()


def say(process: subprocess.Popen[str], word: str) -> str:
    """Tell the readers something; their answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(word + "\n")
    process.stdin.flush()
    return process.stdout.readline()


def read_until(stream: socket.socket, mark: bytes) -> tuple[bytes, float]:
    """What comes until `mark` has come, and when it had."""
    received = bytearray()
    while True:
        piece = stream.recv(1 << 18)
        if not piece:
            raise SystemExit("the stream was closed")
        at = max(0, len(received) - len(mark))
        received += piece
        if received.find(mark, at) >= 0:
            return bytes(received), time.perf_counter()


def replay(server: Server, chat: str) -> tuple[float, int]:
    """Seconds from the request to the ping that says «that was all», and how many events came."""
    with server.connected() as stream:
        began = time.perf_counter()
        stream.sendall(server.wire("GET", f"/atp/v3/chats/{chat}/events?after=0"))
        received, ended = read_until(stream, _PING)
    return ended - began, received.count(b"\nid: ")


def first_events(server: Server, chat: str, count: int) -> dict[str, list[float]]:
    """Seconds from sending a message to its 202, its turn.started and its first word, on streams that are open."""
    times: dict[str, list[float]] = {"accepted": [], "started": [], "word": []}
    with server.connected() as stream, server.connected() as line:
        stream.sendall(server.wire("GET", f"/atp/v3/chats/{chat}/events?after=0"))
        read_until(stream, _PING)
        for number in range(count):
            body = json.dumps({"message": f"message {number}"}).encode()
            began = time.perf_counter()
            line.sendall(server.wire("POST", f"/atp/v3/chats/{chat}/messages", body))
            marks = {"started": b'"type":"turn.started"', "word": b'"type":"agent.text.delta"'}
            _watch(stream, line, began, marks, times)
    return times


def _watch(
    stream: socket.socket, line: socket.socket, began: float, marks: dict[str, bytes], times: dict[str, list[float]]
) -> None:
    received, answered = b"", False
    while b'"type":"turn.completed"' not in received or not answered:
        ready, _, _ = select.select([stream, line], [], [], 30)
        if not ready:
            raise SystemExit("no event for 30 seconds")
        now = time.perf_counter() - began
        if line in ready:
            status = line.recv(65536).split(b"\r\n", 1)[0]
            if b" 202 " not in status:
                raise SystemExit(status.decode())
            answered = True
            times["accepted"].append(now)
        if stream in ready:
            received += stream.recv(1 << 18)
            for name in [name for name, mark in marks.items() if mark in received]:
                times[name].append(now)
                del marks[name]


def _command(*words: str, home: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "crocevia.cli", *words, "--home", str(home)],
        env=_env(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"crocevia {words[0]} failed:\n{done.stderr}")
    return done.stdout


def _env() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("CROCEVIA_", "OPENCLAW_"))}


def _up(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/up")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
