"""Whoever may not come in is told so at once: of what they announce, nothing is asked for, waited for or kept."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import Iterator

import pytest

from tests.aio import run
from tests.live import SCRIPTED, LiveServer, live_server

DECLARED = (
    SCRIPTED
    + """
[[projects]]
name = "default"
model = "Pepper mini"
mode = "agent"
hourly_limit = 5
"""
)
SETTINGS = """
[gateway.http.endpoints.responses]
enabled = true
[gateway.http.endpoints.chatCompletions]
enabled = true
"""
DOCUMENTS = ("/pepper/openapi.json", "/v1/openapi.json", "/api/v1/openapi.json")
PANEL = ("/panel/projects", "/panel/settings", "/panel/playground/agent", "/panel/files/upload", "/panel/nowhere")
HUGE = 31 * 1024 * 1024
WITH_BODY = ("post", "put", "patch", "delete")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(tmp_path_factory.mktemp("refused"), declaration=DECLARED, settings=SETTINGS) as running:
        yield running


def writing_addresses(server: LiveServer) -> list[tuple[str, str]]:
    """Method and path of everything that takes a body and asks who is there."""
    found = []
    for document in DOCUMENTS:
        with urllib.request.urlopen(server.url + document, timeout=5) as answer:
            described = json.load(answer)
        for path, operations in described["paths"].items():
            for method, operation in operations.items():
                if method in WITH_BODY and operation.get("security") != []:
                    found.append((method.upper(), re.sub(r"\{[^}]*\}", "x", path)))
    return found


async def refusal(server: LiveServer, method: str, path: str, *lines: str) -> tuple[int, dict[str, str], bytes]:
    """What somebody hears who announces a large body and then waits; and that the connection ends after it."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        head = [f"{method} {path} HTTP/1.1", f"host: {host}:{port}", f"content-length: {HUGE}", *lines, "", ""]
        writer.write("\r\n".join(head).encode())
        said = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in said[1:] if line)
        body = await reader.readexactly(int(headers["content-length"]))
        assert await reader.read() == b"", (method, path)
        return int(said[0].split()[1]), headers, body
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("asks", [(), ("expect: 100-continue",)], ids=["sends", "asks first"])
@pytest.mark.parametrize(
    "key", [(), ("authorization: Bearer wrong", "x-pepper-key: wrong")], ids=["no key", "wrong key"]
)
def test_a_caller_without_a_key_is_refused_before_a_byte_of_its_body_is_wanted(
    server: LiveServer, asks: tuple[str, ...], key: tuple[str, ...]
) -> None:
    async def work() -> None:
        addresses = writing_addresses(server)
        assert {path.split("/")[1] for _, path in addresses} >= {"agent", "api.php", "v1", "api"}
        for method, path in addresses:
            slow = path.startswith("/v1") and key  # a wrong secret of this machine is answered ever later
            if slow:
                continue
            status, headers, body = await asyncio.wait_for(refusal(server, method, path, *asks, *key), 5)
            assert (method, path, status) == (method, path, 401)
            assert headers["www-authenticate"]
            assert headers["connection"] == "close"
            assert json.loads(body)["error"]

    run(work(), timeout=50)


@pytest.mark.parametrize("path", PANEL)
def test_the_panel_reads_no_form_of_a_stranger(server: LiveServer, path: str) -> None:
    async def work() -> None:
        for lines in ((), ("sec-fetch-site: same-origin",), ("sec-fetch-site: same-origin", "expect: 100-continue")):
            status, headers, _ = await asyncio.wait_for(refusal(server, "POST", path, *lines), 5)
            assert (status in (401, 403, 404, 405), headers["connection"]) == (True, "close")

    run(work(), timeout=30)


def test_a_broken_body_behind_a_right_key_is_told_with_the_limits_of_its_project(server: LiveServer) -> None:
    async def work() -> None:
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        key = server.secrets["project_key"]
        writer.write(f"POST /agent HTTP/1.1\r\nhost: x\r\nx-pepper-key: {key}\r\ncontent-length: 1\r\n\r\n{{".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        writer.transport.abort()
        assert head.startswith("http/1.1 400 ")
        assert "x-pepper-limit-remaining: 5" in head

    run(work(), timeout=10)
