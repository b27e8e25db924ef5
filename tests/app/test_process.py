"""The process: what it loads, what it says, how it ends."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from crocevia.core.catalogue import EngineSpec
from crocevia.storage.home import Home
from tests.app.serving import BRAIN, KEY, declare, request
from tests.doors.pepper.house import HELLO

SERVE = """
import sys
from pathlib import Path
from crocevia.app import run
from crocevia.config import load
from crocevia.core.errors import GatewayError
from crocevia.storage.home import Home
home = Home(Path(sys.argv[1]))
try:
    sys.exit(run(load(home, flags={"server.port": int(sys.argv[2]), "log.format": "json"}), home))
except GatewayError as error:
    sys.exit(f"refused: {error.message.reason}")
"""
HEAVY = (
    "aiohttp",
    "alembic",
    "genai_prices",
    "pypdfium2",
    "PIL",
    "rich",
    "jinja2",
    "argon2",
    "fpdf",
    "jsonschema",
    "cryptography",
)
SLOW = EngineSpec(name="scripted", kind="scripted", script=[{"say": [{"text": "uno"}, {"delay_ms": 60_000}]}])


def started(home: Path, port: int = 0, program: str = SERVE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(home), str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@contextmanager
def process(
    home: Path, engine: EngineSpec | None = None, program: str = SERVE
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A serving process and the line with which it said so."""
    declare(Home(home), (engine or EngineSpec(name="scripted", kind="scripted"),), (BRAIN,))
    child = started(home, program=program)
    try:
        assert child.stderr is not None
        yield child, json.loads(child.stderr.readline())
    finally:
        child.kill()
        child.communicate(timeout=10)


def port_of(banner: dict[str, Any]) -> int:
    return int(banner["url"].rpartition(":")[2])


def open_stream(port: int) -> socket.socket:
    """A stream that has said its first word."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    sock.sendall(request("/agent", json.dumps(HELLO | {"stream": True}).encode()))
    received = b""
    while b"uno" not in received:
        received += sock.recv(65536)
    return sock


def until(true: Callable[[], bool]) -> None:
    """A bounded poll on another process, which has no event to wait for."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def up(port: int) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", "/up")
        return connection.getresponse().status


def records(home: Path) -> int:
    with closing(sqlite3.connect(home / "crocevia.db")) as rows:
        return int(rows.execute("SELECT count(*) FROM call_records").fetchone()[0])


def test_it_says_where_it_serves_and_ends_well_on_a_signal(tmp_path: Path) -> None:
    with process(tmp_path) as (child, banner):
        assert banner["event"] == "serving"
        assert (banner["projects"], banner["models"], banner["engines"]) == (1, 1, 1)
        assert KEY not in json.dumps(banner)
        connection = http.client.HTTPConnection("127.0.0.1", port_of(banner), timeout=10)
        connection.request("GET", "/up")
        assert connection.getresponse().read() == b'{"status":"ok"}'
        connection.close()
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=10) == 0
        assert child.stderr is not None and "Traceback" not in child.stderr.read()


@pytest.mark.parametrize("tzdata", ["installed", "absent"])
def test_it_serves_on_a_machine_without_a_database_of_time_zones(tmp_path: Path, tzdata: str) -> None:
    bare = "import sys, zoneinfo\nzoneinfo.reset_tzpath(())\n"
    if tzdata == "absent":
        bare += "sys.modules['tzdata'] = None\n"
    with process(tmp_path, program=bare + SERVE) as (_, banner):
        assert banner["event"] == "serving"
        connection = http.client.HTTPConnection("127.0.0.1", port_of(banner), timeout=10)
        connection.request("POST", "/agent", json.dumps(HELLO), {"x-pepper-key": KEY, "x-pepper-project": "casa"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        connection.close()


def test_a_serving_process_loads_nothing_heavy() -> None:
    code = f"""
import sys
import crocevia.app, crocevia.app.logs, uvloop
from crocevia.config import LogSettings
crocevia.app.logs.configure(LogSettings())
import crocevia.engines.scripted.engine, crocevia.engines.openai.chat, crocevia.engines.anthropic.messages
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert found.stdout.strip() == "[]"


def test_a_signal_with_open_streams_ends_them_within_the_grace_period(tmp_path: Path) -> None:
    (tmp_path / "crocevia.toml").write_text("[calls]\ndrain_seconds = 1\n")
    with process(tmp_path, SLOW) as (child, banner):
        streams = [open_stream(port_of(banner)) for _ in range(10)]
        began = time.monotonic()
        child.send_signal(signal.SIGTERM)
        for sock in streams:
            tail = b""
            while piece := sock.recv(65536):
                tail += piece
            assert b"event: error" in tail and b"servizio_non_disponibile" in tail
            sock.close()
        assert child.wait(timeout=10) == 0
        assert time.monotonic() - began < 1 + 2
        assert child.stderr is not None and "Traceback" not in child.stderr.read()


def test_a_second_signal_leaves_at_once(tmp_path: Path) -> None:
    with process(tmp_path, SLOW) as (child, banner):
        sock = open_stream(port_of(banner))
        child.send_signal(signal.SIGINT)
        until(lambda: up(port_of(banner)) == 503)  # two signals at the same moment would be one
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        child.wait(timeout=10)
        assert time.monotonic() - began < 3
        sock.close()
    with closing(sqlite3.connect(tmp_path / "crocevia.db")) as rows:  # and yet knows what the call was
        assert rows.execute("SELECT outcome, ended_by FROM call_records").fetchall() == [("draining", "gateway")]


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of another process's files")
def test_a_full_disk_is_a_503_until_there_is_room_again_and_no_record_is_lost(tmp_path: Path) -> None:
    import resource

    def post() -> tuple[int, str | None, bytes]:
        connection.request("POST", "/agent", json.dumps(HELLO), {"X-Pepper-Key": KEY, "X-Pepper-Project": "casa"})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Retry-After"), answer.read()

    with (
        process(tmp_path) as (child, banner),
        closing(http.client.HTTPConnection("127.0.0.1", port_of(banner), timeout=10)) as connection,
    ):
        assert post()[0] == 200
        room = max(file.stat().st_size for file in tmp_path.glob("crocevia.db*")) + 64 * 1024
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        served = 1
        while (refused := post())[0] == 200:
            served += 1
            assert served < 5000
        assert refused[:2] == (503, "1")
        assert json.loads(refused[2])["error"]["code"] == "servizio_non_disponibile"
        assert child.stderr is not None
        told = json.loads(child.stderr.readline())
        assert (told["level"], told["reason"][:7]) == ("error", "SQLITE_")
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        end = time.monotonic() + 10
        while post()[0] != 200:
            assert time.monotonic() < end
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=20) == 0
    with closing(sqlite3.connect(tmp_path / "crocevia.db")) as rows:
        assert rows.execute("SELECT count(*) FROM call_records WHERE outcome = 'ok'").fetchone() == (served + 1,)


def test_a_taken_address_and_a_served_home_are_said_in_a_word(tmp_path: Path) -> None:
    with process(tmp_path / "a") as (_, banner):
        declare(Home(tmp_path / "b"), (EngineSpec(name="scripted", kind="scripted"),), (BRAIN,))
        for home, port, reason in (("b", port_of(banner), "address_taken"), ("a", 0, "home_in_use")):
            second = started(tmp_path / home, port)
            _, said = second.communicate(timeout=20)
            assert (second.returncode, said.splitlines()[-1]) == (1, f"refused: {reason}")


def test_calls_of_a_killed_process_are_settled_and_still_count(tmp_path: Path) -> None:
    with process(tmp_path, SLOW) as (child, banner):
        open_stream(port_of(banner)).close()
        sock = open_stream(port_of(banner))
        until(lambda: records(tmp_path) == 2)  # written without anybody waiting for them
        child.kill()
        child.wait(timeout=10)
        sock.close()
    declare_limit(Home(tmp_path))
    child = started(tmp_path)
    try:
        assert child.stderr is not None
        assert json.loads(child.stderr.readline())["event"] == "calls of an earlier run were interrupted"
        port = port_of(json.loads(child.stderr.readline()))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        headers = {"X-Pepper-Key": KEY, "X-Pepper-Project": "casa"}
        connection.request("POST", "/agent", json.dumps(HELLO), headers)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["error"]["code"]) == (429, "troppe_richieste")
        connection.close()
    finally:
        child.kill()
        child.communicate(timeout=10)


def declare_limit(home: Home) -> None:
    """Two calls an hour from now on."""
    import asyncio

    from crocevia.core.catalogue import ProjectSpec
    from crocevia.storage import declared
    from crocevia.storage.database import Database

    async def work() -> None:
        database = Database(home.database)
        spec = ProjectSpec(name="casa", mode="agent", model="Pepper 7", hourly_limit=2)
        await database.write(lambda tx: declared.save(tx, spec, 0.0))
        await database.close()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/", {"code": "not_found"}),
        ("/AGENT", {"code": "not_found"}),
        ("/up/x", {"code": "not_found"}),
        ("/v1/x", {"code": "not_found"}),  # that door is off
        ("/agent/", {"code": "non_trovato"}),
        ("/agent/x", {"code": "non_trovato"}),
        ("/agent.php/", {"code": "non_trovato"}),
        ("/api/v1/x", {"type": "not_found"}),
    ],
)
def test_other_addresses_are_404_in_the_json_of_their_door(path: str, error: dict[str, str]) -> None:
    from tests.aio import run
    from tests.app.serving import serving

    async def work() -> None:
        async with serving() as place:
            status, headers, body = await place.post(path, HELLO)
            assert (status, headers["content-type"]) == (404, "application/json")
            assert json.loads(body)["error"].items() >= error.items()

    run(work())
