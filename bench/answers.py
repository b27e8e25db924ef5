"""The responses door: `python -m bench.answers`. CPU per answer by who gives it and how; memory of stored answers.

`crocevia serve` with a scripted engine, one client. CPU is the server's, all threads, in microseconds per answer, in
the quietest of five parts: whatever else the machine does makes every one dearer. Each figure is told on the error
output as soon as it is known, since all of them take minutes on a busy machine; `--against REV` measures another commit
before this tree and adds the ratios, this tree over that one. Memory is what the server's
proportional memory grew by, in MiB, at its highest while answers were made and stored, and at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect

from .against import checked_out
from .processes import SERVER_CPU, pss_mib, running, wait_for
from .servers import free_port

PARTS = 5
AT_ONCE = 64
SETTINGS = "[gateway.http.endpoints.responses]\nenabled = true\n[gateway.http.models]\nexposeCatalog = true\n"
DECLARED = """
[[engines]]
name = "embedded"
kind = "scripted"
script = [
  { when = { after_tool = true }, say = [{ text = "hello" }] },
  { when = { tool_offered = "list" }, say = [{ tool = "list", arguments = {} }] },
  { say = [{ text = "hello" }] },
]
[[agents]]
name = "talker"
mode = "primary"
[[agents]]
name = "doer"
mode = "primary"
tools = ["list"]
"""
CASES: dict[str, dict[str, Any]] = {
    "model, store: false": {"model": "Pepper mini", "store": False},
    "model": {"model": "Pepper mini"},
    "agent, store: false": {"model": "openclaw/talker", "store": False},
    "agent": {"model": "openclaw/talker"},
    "agent with a tool round, in a chat": {"model": "openclaw/doer"},
}


@dataclass
class Server:
    pid: int
    port: int
    token: str
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def cpu_us(self) -> float:
        """On-CPU time of every thread so far."""
        spent = (task / "schedstat" for task in Path(f"/proc/{self.pid}/task").iterdir())
        return sum(int(file.read_text().split()[0]) for file in spent) / 1e3

    async def measure(self, name: str, once: Callable[[], Awaitable[Any]], count: int) -> None:
        await once()
        costs = []
        for _ in range(PARTS):
            before = self.cpu_us
            for _ in range(count // PARTS):
                await once()
            costs.append((self.cpu_us - before) / (count // PARTS))
        self.figures[name] = round(min(costs))
        print(f"{name}: {self.figures[name]} us", file=sys.stderr, flush=True)


class Link:
    """One keep-alive connection."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def open(self) -> Link:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        return self

    async def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps(body).encode()
        head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._server.token}\r\n"
        self._writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        status = await self._reader.readuntil(b"\r\n\r\n")
        length = next(line for line in status.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        found: dict[str, Any] = json.loads(await self._reader.readexactly(int(length.split(b":")[1])))
        if found.get("status") != "completed":
            raise SystemExit(f"not answered: {found}")
        return found

    def close(self) -> None:
        self._writer.close()


@contextmanager
def serving(folder: Path, source: Path | None = None) -> Iterator[Server]:
    """source: the folder that holds the package to be run; by default the installed one."""
    home, port = folder / "home", free_port()
    env = {name: value for name, value in os.environ.items() if not name.startswith("CROCEVIA_")}
    if source is not None:
        env["PYTHONPATH"] = str(source)
    command = [sys.executable, "-m", "crocevia.cli"]
    init = [*command, "init", "--json", "--home", str(home)]
    made = json.loads(subprocess.run(init, env=env, capture_output=True, text=True, check=True).stdout)
    (home / "crocevia.toml").write_text(SETTINGS, encoding="utf-8")
    declared = folder / "declared.toml"
    declared.write_text(DECLARED, encoding="utf-8")
    subprocess.run([*command, "apply", str(declared), "--home", str(home)], env=env, capture_output=True, check=True)
    serve = [*command, "serve", "--home", str(home), "--port", str(port)]
    with running(serve, cpus=SERVER_CPU, log=folder / "serve.log", env=env) as process:
        wait_for(lambda: process.poll() is not None or _probe(port) == b"", seconds=30)
        if process.poll() is not None:  # whoever listens there is not ours
            raise SystemExit(f"crocevia serve does not run:\n{(folder / 'serve.log').read_text()}")
        yield Server(process.pid, port, made["operator_token"])


def _probe(port: int) -> bytes | None:
    """b"" once somebody listens."""
    import socket

    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return None
    return b""


async def costs(server: Server, count: int) -> None:
    link = await Link(server).open()
    for name, body in CASES.items():
        await server.measure(name, lambda body=body: link.ask({**body, "input": "hi"}), count)  # type: ignore[misc]
    link.close()
    await turns(server, count)


async def turns(server: Server, count: int) -> None:
    """The same turn of a conversation, over HTTP with a stream and over a WebSocket."""
    body = {"model": "openclaw/talker", "input": "hi", "store": False}

    async def over_http() -> None:
        link = await Link(server).open()
        data = json.dumps({**body, "stream": True}).encode()
        head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
        link._writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        if b"response.completed" not in await link._reader.read():
            raise SystemExit("the stream was not completed")
        link.close()

    await server.measure("a turn over HTTP, streamed", over_http, count)
    headers = {"Authorization": f"Bearer {server.token}"}
    async with connect(f"ws://127.0.0.1:{server.port}/v1/responses", additional_headers=headers, proxy=None) as socket:

        async def over_socket() -> None:
            await socket.send(json.dumps({"type": "response.create", **body}))
            while b'"response.completed"' not in (await socket.recv(decode=False))[:60]:
                pass

        await server.measure("a turn over a WebSocket", over_socket, count)


async def memory(server: Server, count: int) -> dict[str, float]:
    """What `count` stored answers cost, `AT_ONCE` of them being made at any moment."""
    links = [await Link(server).open() for _ in range(AT_ONCE)]
    body = {"model": "openclaw/talker", "input": "hi"}
    for link in links:  # what every connection costs is not what an answer costs
        await link.ask(body)
    before = highest = pss_mib(server.pid)
    left = iter(range(count))

    async def work(link: Link) -> None:
        for _ in left:
            await link.ask(body)

    working = [asyncio.ensure_future(work(link)) for link in links]
    while not all(task.done() for task in working):
        highest = max(highest, pss_mib(server.pid))
        await asyncio.wait(working, timeout=0.5)
    await asyncio.gather(*working)
    time.sleep(0.5)
    after = pss_mib(server.pid)
    for link in links:
        link.close()
    return {"at the most": round(max(highest, after) - before, 1), "at the end": round(after - before, 1)}


async def _run(answers: int, stored: int, source: Path | None = None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), source) as server:
        await costs(server, answers)
        risen = await memory(server, stored) if stored else {}
        return {"cpu_us_per_answer": server.figures, f"mib_of_{stored}_stored": risen}


def _against(revision: str, answers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        there = asyncio.run(_run(answers, 0, checked_out(revision, Path(folder))))["cpu_us_per_answer"]
    here = asyncio.run(_run(answers, 0))["cpu_us_per_answer"]
    return {
        name: {revision: there[name], "here": here[name], "ratio": round(here[name] / there[name], 3)} for name in here
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=1000, help="per figure of CPU")
    parser.add_argument("--stored", type=int, default=10_000, help="0: leave the memory out")
    parser.add_argument("--against", metavar="REV", help="this tree after another commit, CPU only")
    asked = parser.parse_args()
    found = _against(asked.against, asked.answers) if asked.against else asyncio.run(_run(asked.answers, asked.stored))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
