"""deploy/nginx.conf in front of a server: streams flow, pings pass, errors keep their status, headers and words."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from crocevia.config import Calls
from crocevia.core.catalogue import EngineSpec
from tests.aio import run
from tests.app.serving import read_answer, request, serving
from tests.doors.pepper.house import HELLO
from tests.live import free_port

CONF = Path(__file__).resolve().parents[2] / "deploy" / "nginx.conf"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="NGINX IS NOT INSTALLED: deploy/nginx.conf is not tested here")

STREAM = HELLO | {"stream": True}
PIECES = EngineSpec(
    name="scripted",
    kind="scripted",
    script=[{"say": [piece for n in range(11) for piece in ({"text": f"pezzo{n} "}, {"delay_ms": 60})]}],
)
SILENT = EngineSpec(name="scripted", kind="scripted", script=[{"say": [{"delay_ms": 700}, {"text": "ecco"}]}])


@asynccontextmanager
async def behind_nginx(folder: Path, behind: int) -> AsyncIterator[int]:
    """The port of an nginx that runs our file in front of a server."""
    assert NGINX is not None
    port = free_port()
    site = CONF.read_text().replace("127.0.0.1:8111", f"127.0.0.1:{behind}")
    site = site.replace("listen 80;", f"listen 127.0.0.1:{port};")
    paths = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = (
        f"daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n"
        f"events {{ worker_connections 128; }}\nhttp {{\naccess_log off;\n{paths}{site}\n}}\n"
    )
    (folder / "main.conf").write_text(main)
    command = [NGINX, "-e", f"{folder}/error.log", "-p", str(folder), "-c", f"{folder}/main.conf"]
    subprocess.run([*command, "-t"], check=True, capture_output=True, timeout=10)
    process = await asyncio.create_subprocess_exec(*command)
    try:
        await reachable(port)
        yield port
    finally:
        process.terminate()
        await process.wait()


async def reachable(port: int) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            return


async def arrivals(port: int, path: str = "/agent") -> tuple[dict[str, str], list[tuple[float, bytes]]]:
    """The headers, and every read of the body with its moment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(path, json.dumps(STREAM).encode(), **{"accept-encoding": "gzip", "connection": "close"}))
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    found = []
    while data := await reader.read(65536):
        found.append((time.monotonic(), data))
    writer.close()
    assert " 200 " in head[0]
    return dict(line.split(": ", 1) for line in head[1:] if line), found


def spread(found: list[tuple[float, bytes]]) -> float:
    deltas = [at for at, data in found if b"event: delta" in data]
    return deltas[-1] - deltas[0]


def test_streams_flow_as_they_do_without_nginx(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(engine=PIECES) as place, behind_nginx(tmp_path, place.port) as port:
            direct = min([spread((await arrivals(place.port))[1]) for _ in range(2)])  # less of the machine's noise
            for path in ("/agent", "/agent.php"):
                headers, through = await arrivals(port, path)
                assert spread(through) >= 0.8 * direct
                assert b"".join(data for _, data in through).count(b"event: delta") == 11
                assert "content-encoding" not in headers
                assert headers["content-type"].startswith("text/event-stream")

    run(work(), timeout=30)


def test_pings_pass_while_the_model_is_silent(tmp_path: Path) -> None:
    async def work() -> None:
        calls = Calls(ping_seconds=0.1)
        async with serving(engine=SILENT, calls=calls) as place, behind_nginx(tmp_path, place.port) as port:
            _, through = await arrivals(port)
            first_delta = next(at for at, data in through if b"event: delta" in data)
            pings = [at for at, data in through if b": ping" in data and at < first_delta]
            assert len(pings) >= 3
            assert pings[-1] - pings[0] > 0.2

    run(work(), timeout=30)


def test_errors_keep_their_status_headers_and_words(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(hourly_limit=1) as place, behind_nginx(tmp_path, place.port) as port:
            assert (await post(port, json.dumps(HELLO).encode()))[0] == 200
            status, headers, body = await post(port, json.dumps(HELLO).encode())
            assert (status, error(body)) == (429, "troppe_richieste")
            assert int(headers["retry-after"]) >= 1
            assert headers["x-pepper-limit-remaining"] == "0"
            status, _, body = await post(port, b'{"messages":"' + b"x" * (33 * 1024 * 1024) + b'"}')
            assert (status, error(body)) == (413, "richiesta_troppo_grande")
            status, headers, body = await post(port, b"", **{"content-length": str(42 * 1024 * 1024)})
            assert (status, error(body)) == (413, "richiesta_troppo_grande")  # nginx's own refusal
            assert headers["content-type"] == "application/json"
            status, _, body = await post(port, b"{}", **{"x-pepper-key": ""})
            assert (status, error(body)) == (401, "non_autorizzato")
            status, headers, body = await post(port, b"{", path="/api.php")
            assert (status, error(body)) == (400, "richiesta_non_valida")

    run(work(), timeout=30)


def error(body: bytes) -> Any:
    return json.loads(body)["error"]["code"]


async def post(port: int, body: bytes, path: str = "/agent", **headers: str) -> tuple[int, dict[str, str], bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request(path, body, **headers))
        return await read_answer(reader)
    finally:
        writer.transport.abort()


def test_a_caller_that_hangs_up_at_nginx_ends_the_call_behind_it(tmp_path: Path) -> None:
    slow = EngineSpec(name="scripted", kind="scripted", script=[{"say": [{"text": "uno"}, {"delay_ms": 60_000}]}])

    async def work() -> None:
        async with serving(engine=slow) as place, behind_nginx(tmp_path, place.port) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request("/agent", json.dumps(STREAM).encode()))
            await reader.readuntil(b"uno")
            writer.transport.abort()
            began = time.monotonic()
            record = await place.record()
            assert (record.outcome, record.ended_by) == ("cancelled", "client")
            assert time.monotonic() - began < 2

    run(work(), timeout=30)
