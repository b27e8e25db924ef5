"""Where no secret protects, a page cannot reach the server by pointing a name of its own at this machine."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator

import pytest

from tests.aio import run
from tests.app.serving import read_answer
from tests.e2e.test_refused_bodies import DECLARED, SETTINGS
from tests.live import LiveServer, live_server

SERVER = """[server]
public_url = "https://gateway.example.org"
cors_origins = ["https://app.example.org", "*"]
"""
OPEN = SERVER + SETTINGS + '[gateway.auth]\nmode = "none"\n'
OURS = ("localhost", "localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "agents.localhost", "gateway.example.org")
FOREIGN = ("evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "192.168.1.9", "localhost.evil.example")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(tmp_path_factory.mktemp("open"), declaration=DECLARED, settings=OPEN) as running:
        yield running


async def said(server: LiveServer, host: str, *lines: str, upgrade: bool = False) -> int:
    where, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(where, int(port))
    host = host.format(port=port)
    socket = ("connection: Upgrade", "upgrade: websocket", "sec-websocket-version: 13")
    key = f"sec-websocket-key: {base64.b64encode(b'0' * 16).decode()}"
    more = (*socket, key) if upgrade else ()
    path = "/v1/responses" if upgrade else "/v1/models"
    writer.write("\r\n".join([f"GET {path} HTTP/1.1", f"host: {host}", *lines, *more, "", ""]).encode())
    try:
        if upgrade:
            return int((await asyncio.wait_for(reader.readline(), 5)).split()[1])
        return (await asyncio.wait_for(read_answer(reader), 5))[0]
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("upgrade", [False, True], ids=["http", "websocket"])
def test_without_a_secret_only_our_own_names_are_answered(server: LiveServer, upgrade: bool) -> None:
    async def work() -> None:
        for host in OURS:
            for lines in ((), (f"origin: http://{host.format(port=server.url.rpartition(':')[2])}",)):
                assert (host, await said(server, host, *lines, upgrade=upgrade)) == (host, 101 if upgrade else 200)
        for host in FOREIGN:
            for lines in ((), (f"origin: http://{host.format(port=server.url.rpartition(':')[2])}",)):
                assert (host, await said(server, host, *lines, upgrade=upgrade)) == (host, 403)
        assert (
            await said(server, "localhost", "origin: http://evil.example", upgrade=upgrade) == 401
        )  # whatever `*` says
        app = await said(server, "localhost", "origin: https://app.example.org", upgrade=upgrade)
        assert app == (101 if upgrade else 200)

    run(work(), timeout=30)
