"""The control plane: `python -m bench.control`. CPU per operation and extra memory, by `crocevia serve` on SQLite.

One client, one keep-alive connection, one request after the other. CPU is the server's, all threads, in milliseconds
per request, in the quietest of five parts of the requests: whatever else the machine does makes every one dearer.
Memory is what the server's peak rose above what it held before, in MiB.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crocevia.storage import chats
from crocevia.storage.database import immediate

from .control_rows import completions_of, teams_of
from .processes import OWN_CPUS, SERVER_CPU, running, wait_for
from .servers import free_port

CHATS = 10_000
TEAMS = 420
FILE = 10 * 1024 * 1024
PARTS = 5
KEYS = 50  # at most 60 a minute may be made
SIZES = (15, 100, 1000)
LISTS = 100  # requests per figure of a list
THREE = {"X-Envai-Contract-Version": "3"}
Body = dict[str, Any] | None


@dataclass
class Server:
    """One that runs. ids: what the home was made with. figures: milliseconds of CPU, by operation."""

    pid: int
    port: int
    home: Path
    ids: dict[str, str]
    count: int
    figures: dict[str, float] = field(default_factory=dict)
    links: list[Connection] = field(default_factory=list)

    def connect(self) -> Connection:
        self.links.append(Connection(self))
        return self.links[-1]

    def close(self) -> None:
        for link in self.links:
            link.close()

    def measure(self, name: str, asks: list[Callable[[], Any]]) -> list[Any]:
        """Run them all; note what one costs the server."""
        found, costs = [asks[0]()], []
        size = max(1, (len(asks) - 1) // PARTS)
        for start in range(1, 1 + size * PARTS, size):
            before = _cpu_ms(self.pid)
            found += [ask() for ask in asks[start : start + size]]
            costs.append((_cpu_ms(self.pid) - before) / size)
        found += [ask() for ask in asks[1 + size * PARTS :]]
        self.figures[name] = round(min(costs), 2)
        return found[1:]


class Connection:
    """A keep-alive connection of the home's first user."""

    def __init__(self, server: Server) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        self._key = {"Authorization": f"Bearer {server.ids['api_key']}", **THREE}

    def close(self) -> None:
        self._http.close()

    def ask(
        self, method: str, path: str, body: Body = None, raw: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        sent = raw if raw is not None else None if body is None else json.dumps(body).encode()
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        self._http.request(method, f"/api/v1{path}", sent, self._key | more)
        answer = self._http.getresponse()
        read = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {read[:300]!r}")
        return answer.status, read

    def data(self, *args: Any, **options: Any) -> Any:
        return json.loads(self.ask(*args, **options)[1])["data"]

    def upload(self, path: str, name: str, data: bytes) -> Any:
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'
        raw = head + data + b"\r\n--b--\r\n"
        return self.data("POST", path, raw=raw, Content_Type="multipart/form-data; boundary=b", Idempotency_Key=name)


@contextmanager
def serving(folder: Path, count: int) -> Iterator[Server]:
    """`crocevia serve` on a home of its own."""
    home, port = folder / "home", free_port()
    env = {name: value for name, value in os.environ.items() if not name.startswith("CROCEVIA_")}
    command = [sys.executable, "-m", "crocevia.cli"]
    done = subprocess.run(
        [*command, "init", "--json", "--home", str(home)], env=env, capture_output=True, text=True, check=True
    )
    serve = [*command, "serve", "--home", str(home), "--port", str(port)]
    with running(serve, cpus=SERVER_CPU, log=folder / "serve.log", env=env) as process:
        server = Server(process.pid, port, home, json.loads(done.stdout), count)
        wait_for(lambda: process.poll() is not None or _up(port), seconds=30)
        try:
            yield server
        finally:
            server.close()


def _up(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/up")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def crud(server: Server, kind: str, path: str, new: Callable[[int], dict[str, Any]], change: dict[str, Any]) -> None:
    """Create, read, change and delete `count` objects of a kind that has all four."""
    link = server.connect()
    key = "name" if kind == "tool" else "id"
    asks = [lambda n=n: link.data("POST", path, new(n)) for n in range(server.count + 1)]
    made = [item[key] for item in server.measure(f"{kind}.create", asks)]
    for verb, method, body in (("get", "GET", None), ("update", "PUT", change), ("delete", "DELETE", None)):
        server.measure(f"{kind}.{verb}", [lambda m=method, i=i, b=body: link.ask(m, f"{path}/{i}", b) for i in made])


def resources(server: Server) -> None:
    link, many = server.connect(), range(server.count + 1)
    space, team = f"/workspaces/{server.ids['workspace_id']}", server.ids["team_id"]
    leader = next(agent["id"] for agent in link.data("GET", "/agents") if agent["mode"] == "primary")
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    crud(server, "tool", "/tools", lambda n: {"name": f"t{n}", "parameters": schema}, {"timeout_seconds": 9})
    agent = {"system_prompt": "Be useful.", "mode": "subagent"}
    crud(server, "agent", "/agents", lambda n: agent | {"name": f"a{n}"}, {"description": "x"})
    crud(server, "team", "/teams", lambda n: {"name": f"t{n}", "orchestrator_id": leader}, {"description": "x"})
    asks = [lambda n=n: link.data("POST", "/workspaces", {"name": f"w{n}"}) for n in many]
    made = [item["id"] for item in server.measure("workspace.create", asks)]
    server.measure("workspace.get", [lambda i=i: link.ask("GET", f"/workspaces/{i}") for i in made])
    server.measure("workspace.update", [lambda i=i: link.ask("PUT", f"/workspaces/{i}", {"name": "x"}) for i in made])
    asks = [lambda: link.data("POST", f"{space}/chats", {"team_id": team}) for _ in many]
    made = [item["id"] for item in server.measure("chat.create", asks)]
    server.measure("chat.get", [lambda i=i: link.ask("GET", f"{space}/chats/{i}") for i in made])
    keys(server, link)
    files(server, link, f"{space}/files")
    attachments(server, link, f"{space}/chats/{made[0]}/attachments")
    turns = completions_of(server.home, server.ids, made[0], server.count + 1)
    where = f"{space}/chats/{made[0]}/completions"
    server.measure("completion.get", [lambda i=i: link.ask("GET", f"{where}/{i}") for i in turns])
    server.measure("completion.list (15)", [lambda: link.ask("GET", where)] * len(many))
    server.measure("capabilities.get", [lambda: link.ask("GET", "/atp/v3/capabilities")] * len(many))


def keys(server: Server, link: Connection) -> None:
    asks = [lambda n=n: link.data("POST", "/api-keys", {"name": f"k{n}"}) for n in range(KEYS)]
    made = [item["id"] for item in server.measure("key.create", asks)]
    server.measure(f"key.list ({KEYS})", [lambda: link.ask("GET", "/api-keys")] * LISTS)
    server.measure("key.delete", [lambda i=i: link.ask("DELETE", f"/api-keys/{i}") for i in made])


def files(server: Server, link: Connection, path: str) -> None:
    many = range(server.count + 1)
    body = lambda n: {"path": f"/notes/{n}.md", "content": "# A note\n" * 20}  # noqa: E731
    for verb, method in (("create", "POST"), ("update", "PUT")):
        server.measure(f"file.{verb}", [lambda m=method, n=n: link.ask(m, path, body(n)) for n in many])
    for verb, method, where in (("get", "GET", ""), ("download", "GET", "/download"), ("delete", "DELETE", "")):
        asks = [lambda m=method, w=where, n=n: link.ask(m, f"{path}{w}?path=/notes/{n}.md") for n in many]
        server.measure(f"file.{verb}", asks)


def attachments(server: Server, link: Connection, path: str) -> None:
    many = range(server.count + 1)
    asks = [lambda n=n: link.upload(path, f"k{n}", b"%PDF-1.7 " + b"x" * 1000) for n in many]
    made = [item["attachment_id"] for item in server.measure("attachment.upload (1 KB)", asks)]
    for verb, method, end in (
        ("get", "GET", ""),
        ("download", "GET", "/download?kind=original"),
        ("delete", "DELETE", ""),
    ):
        asks = [lambda m=method, i=i, e=end: link.ask(m, f"{path}/{i}{e}") for i in made]
        server.measure(f"attachment.{verb}", asks)


def lists(server: Server) -> None:
    link, ids = server.connect(), server.ids
    for kind in ("workspaces", "tools", "agents", "teams"):
        count = len(link.data("GET", f"/{kind}"))
        server.measure(f"{kind}.list ({count})", [lambda k=kind: link.ask("GET", f"/{k}")] * LISTS)
    for count in (1, TEAMS):
        teams_of(server.home, ids, count)
        server.measure(f"models.list ({count} teams)", [lambda: link.ask("GET", "/models")] * LISTS)
    space = link.data("POST", "/workspaces", {"name": "many"})["id"]
    with immediate(server.home / "crocevia.db") as tx:
        made = [chats.add(tx, ids["user_id"], space, ids["team_id"], time.time()).id for _ in range(CHATS)]
    made.sort(reverse=True)
    for size in SIZES:
        for name, at in (("first", None), ("middle", CHATS // 2), ("last", CHATS - size)):
            before = "" if at is None else f"&before={made[at - 1]}"
            path = f"/workspaces/{space}/chats?per_page={size}{before}"
            server.measure(f"chats.list ({size}, {name} page)", [lambda p=path: link.ask("GET", p)] * LISTS)


def memory(server: Server) -> dict[str, float]:
    """MiB that the server's peak rises while 10 MiB come or go: one at a time, eight at a time."""
    link, ids = server.connect(), server.ids
    space = f"/workspaces/{ids['workspace_id']}"
    chat = link.data("POST", f"{space}/chats", {"team_id": ids["team_id"]})["id"]
    path, data = f"{space}/chats/{chat}/attachments", b"%PDF-1.7 " + b"x" * (FILE - 9)
    made = [link.upload(path, "warm", data)["attachment_id"]]
    found = {}
    for count in (1, 8):
        with ThreadPoolExecutor(count) as pool:
            links = [server.connect() for _ in range(count)]

            def up(n: int, links: list[Connection] = links, count: int = count) -> Any:
                return links[n].upload(path, f"{count}-{n}", data)

            def down(n: int, links: list[Connection] = links) -> Any:
                return links[n].ask("GET", f"{path}/{made[0]}/download?kind=original")

            for name, work in (("upload", up), ("download", down)):
                found[f"10 MiB {name}, {count} at a time"] = _risen(
                    server.pid, lambda w=work, c=count: list(pool.map(w, range(c)))
                )
    return found


def _risen(pid: int, work: Callable[[], Any]) -> float:
    status = Path(f"/proc/{pid}/status")
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
    before = _kib(status, "VmRSS")
    work()
    return round((_kib(status, "VmHWM") - before) / 1024, 1)


def _cpu_ms(pid: int) -> float:
    """On-CPU time of every thread so far, in steps finer than the clock ticks of /proc/PID/stat."""
    spent = (task / "schedstat" for task in Path(f"/proc/{pid}/task").iterdir())
    return sum(int(file.read_text().split()[0]) for file in spent) / 1e6


def _kib(status: Path, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", status.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def run(count: int, folder: Path) -> dict[str, Any]:
    with serving(folder, count) as server:
        before, began = _cpu_ms(server.pid), time.monotonic()
        time.sleep(2)
        idle = (_cpu_ms(server.pid) - before) / (time.monotonic() - began)
        resources(server)
        lists(server)
        risen = memory(server)
    return {"idle_cpu_ms_per_s": round(idle, 1), "cpu_ms": server.figures, "extra_memory_mib": risen}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.control", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="requests per figure")
    chosen = parser.parse_args(arguments)
    if sys.platform != "linux":
        raise SystemExit("the benchmark reads /proc and pins CPUs: it runs on Linux")
    os.sched_setaffinity(0, OWN_CPUS)
    with tempfile.TemporaryDirectory(prefix="crocevia-bench-") as folder:
        print(json.dumps(run(chosen.count, Path(folder)), indent=2))


if __name__ == "__main__":
    main()
