"""What is measured: Crocevia on a home of its own, nginx proxying the same upstream, and peers that run already."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from .load import Request
from .processes import OWN_CPUS, SERVER_CPU, cpu_seconds, running, wait_for

AGENT: Final = "/agent"
CHAT: Final = "/v1/chat/completions"
RESPONSES: Final = "/v1/responses"
_MESSAGES = [{"role": "user", "content": "Which way is the station, please?"}]
_PROJECT_KEY = "bench-project-key-0123456789abcdef"


@dataclass(frozen=True)
class Target:
    """A server. ask: what a client sends it, for a call that streams or not. cold_start: seconds to the first 200.

    door: which of our own addresses it is. Only the first of a process has a cold start, and is weighed while idle.
    """

    name: str
    version: str
    pid: int
    ask: Callable[[bool], Request]
    cold_start: float | None = None
    door: str = ""

    def cpu(self) -> float:
        return cpu_seconds(self.pid)


def openai_body(stream: bool, model: str = "mock") -> bytes:
    return json.dumps({"model": model, "messages": _MESSAGES, "stream": stream}).encode()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(request: Request) -> bool:
    """Whether the server answers this request with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", request.port, timeout=5)
    try:
        headers = {"Content-Type": "application/json", **dict(request.headers)}
        connection.request("POST", request.path, request.body, headers)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def upstream(folder: Path, port: int, tokens: int, spacing_ms: float) -> Iterator[Target]:
    """The mock on the generator's CPUs; asked directly it is the zero of all latencies."""
    port = port or free_port()
    command = [sys.executable, "-m", "bench.upstream", f"--port={port}", f"--tokens={tokens}"]
    with running([*command, f"--spacing-ms={spacing_ms}"], cpus=OWN_CPUS, log=folder / "upstream.log") as process:
        target = Target("direct", "", process.pid, _openai_asker(port))
        wait_for(lambda: answers(target.ask(False)), seconds=10)
        yield target


def _openai_asker(port: int) -> Callable[[bool], Request]:
    return lambda stream: Request(port, "/v1/chat/completions", openai_body(stream))


_NGINX = """
{user}worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000000;
  upstream mock {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


@contextmanager
def nginx(folder: Path, upstream_port: int) -> Iterator[Target | None]:
    """nginx as a plain proxy of the mock; None when it is not installed."""
    program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if program is None:
        yield None
        return
    port = free_port()
    config = folder / "nginx.conf"
    user = "user root;\n" if os.getuid() == 0 else ""  # else its worker could not enter the temporary folder
    config.write_text(_NGINX.format(folder=folder, port=port, upstream=upstream_port, user=user))
    told = subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stderr
    began = time.perf_counter()
    with running([program, "-c", str(config)], cpus=SERVER_CPU, log=folder / "nginx.log") as process:
        ask = _openai_asker(port)
        wait_for(lambda: answers(ask(False)), seconds=10)
        cold = time.perf_counter() - began
        yield Target("nginx (proxy only)", told.rpartition("/")[2].strip(), process.pid, ask, cold)


_DECLARED = """
[[engines]]
name = "mock"
kind = "{kind}"
base_url = "http://127.0.0.1:{upstream}{path}"
api_key = "not-a-secret"
[[models]]
name = "Mock"
engine = "mock"
upstream = "mock"
prices = {{ input = 1, output = 2 }}
[[projects]]
name = "bench"
key = "{key}"
mode = "agent"
model = "Mock"
hourly_limit = 1000000000
daily_budget_usd = 1000000000
max_concurrency = 100000
[[agents]]
name = "greeter"
model = "Mock"
"""
_AGENT = "openclaw/greeter"


@contextmanager
def crocevia(folder: Path, upstream_port: int, kind: str, *, source: Path | None = None) -> Iterator[list[Target]]:
    """`crocevia serve` as an operator runs it: key check, limits, budget and record are on. One target per door.

    source: the folder that holds the package to be run; by default the installed one.
    """
    home = folder / "home"
    path = "/v1" if kind == "openai-chat" else ""
    declared = folder / "bench.toml"
    declared.write_text(_DECLARED.format(kind=kind, upstream=upstream_port, path=path, key=_PROJECT_KEY))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CROCEVIA_", "OPENCLAW_"))}
    if source is not None:
        env["PYTHONPATH"] = str(source)
    command = [sys.executable, "-m", "crocevia.cli"]
    told = []
    for step in (["init", "--json"], ["apply", str(declared)]):
        done = subprocess.run(
            [*command, *step, "--home", str(home)], env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"crocevia {step[0]} failed:\n{done.stderr}")
        told.append(done.stdout)
    port = free_port()
    serve = [*command, "serve", "--home", str(home), "--port", str(port)]

    doors = _doors(port, json.loads(told[0])["operator_token"])
    ask = doors[AGENT]

    began = time.perf_counter()
    with running(serve, cpus=SERVER_CPU, log=folder / "serve.log", env=env) as process:
        try:
            wait_for(lambda: process.poll() is not None or answers(ask(False)), seconds=30)
            cold = time.perf_counter() - began
            if process.poll() is not None:
                raise TimeoutError
        except TimeoutError:
            raise SystemExit(f"crocevia serve does not answer:\n{(folder / 'serve.log').read_text()}") from None
        version = _own_version()
        yield [
            Target(f"Crocevia ({kind}) `{door}`", version, process.pid, ask, cold if door == AGENT else None, door)
            for door, ask in doors.items()
        ]


def _doors(port: int, operator_token: str) -> dict[str, Callable[[bool], Request]]:
    """What is asked of each door."""
    keys = (("X-Pepper-Key", _PROJECT_KEY), ("X-Pepper-Project", "bench"))
    bearer = (("Authorization", f"Bearer {operator_token}"),)

    def agent(stream: bool) -> Request:
        body = {"stream": stream, "max_tokens": 1024, "messages": _MESSAGES}
        return Request(port, AGENT, json.dumps(body).encode(), keys)

    def responses(stream: bool) -> Request:
        body = {"model": _AGENT, "input": "hi", "stream": stream}
        return Request(port, RESPONSES, json.dumps(body).encode(), bearer)

    return {
        AGENT: agent,
        CHAT: lambda stream: Request(port, CHAT, openai_body(stream, _AGENT), bearer),
        RESPONSES: responses,
    }


def _own_version() -> str:
    try:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit.stdout.strip()


def peer(name: str, url: str, pid: int, headers: list[str], model: str) -> Target:
    """A server that runs already and takes `/v1/chat/completions` calls; its process tree is pinned like ours."""
    address = urlsplit(url)
    extra = tuple((key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in headers))

    def ask(stream: bool) -> Request:
        return Request(address.port or 80, address.path, openai_body(stream, model), extra)

    title, _, version = name.partition("@")
    if not re.fullmatch(r"127\.0\.0\.1|localhost", address.hostname or ""):
        raise SystemExit(f"--peer {name}: only servers on this machine can be measured")
    if not answers(ask(False)):
        raise SystemExit(f"--peer {name}: {url} does not answer with 200")
    return Target(title, version, pid, ask)
