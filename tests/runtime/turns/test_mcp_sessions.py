"""Sessions with MCP servers that are old, forgetful, slow to offer tools, or change them."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.mcp import McpServer
from crocevia.runtime.turns.tools import mcp_servers
from crocevia.runtime.turns.tools.mcp_servers import McpServers, names_for_models
from crocevia.runtime.turns.tools.registry import Toolbox, ToolContext
from tests.aio import run

pytest.importorskip("mcp")
OLD = (sys.executable, str(Path(__file__).with_name("mcp_old_child.py")))
NOBODY = cast("ToolContext", None)


@pytest.fixture(autouse=True)
def never_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every turn looks whether the server is there."""
    monkeypatch.setattr(mcp_servers, "_FRESH", 0.0)


async def used(servers: McpServers, tool: str, server: str = "calc") -> Any:
    return (await (await servers.tools(server))[tool].run(NOBODY, {})).value


@pytest.mark.slow
def test_a_server_that_refuses_to_be_pinged_is_alive_and_keeps_its_state() -> None:
    async def work() -> None:
        servers = McpServers({"calc": McpServer(command=OLD)})
        try:
            assert [await used(servers, "mcp_calc_count") for _ in range(3)] == ["count 1", "count 2", "count 3"]
        finally:
            await servers.close()

    run(work(), timeout=50)


@pytest.mark.slow
def test_a_tool_that_a_server_comes_to_offer_is_there_at_the_next_turn() -> None:
    async def work() -> None:
        servers = McpServers({"calc": McpServer(command=OLD)})
        try:
            assert "mcp_calc_sing" not in await servers.tools("calc")
            await used(servers, "mcp_calc_learn")
            assert await used(servers, "mcp_calc_sing") == "sing 2"
        finally:
            await servers.close()

    run(work(), timeout=50)


@pytest.mark.slow
def test_an_empty_first_list_is_asked_for_again() -> None:
    async def work() -> None:
        servers = McpServers({"calc": McpServer(command=(*OLD, "late"))})
        try:
            assert await servers.tools("calc") == {}
            assert await used(servers, "mcp_calc_count") == "count 1"
        finally:
            await servers.close()

    run(work(), timeout=50)


@pytest.mark.slow
def test_how_a_server_does_is_known_without_asking_it() -> None:
    async def work() -> None:
        servers = McpServers({"calc": McpServer(command=OLD), "gone": McpServer(command=("/nowhere/at/all",))})
        assert [state.state for state in servers.states()] == ["idle", "idle"]
        with pytest.raises(GatewayError) as refused:
            await servers.tools("gone")
        assert refused.value.reason is Reason.MCP_UNREACHABLE
        await servers.tools("calc")
        calc, gone = servers.states()
        assert (calc.state, gone.state) == ("ready", "unreachable")
        assert "mcp_calc_count" in calc.tools
        await servers.close()
        assert servers.states()[0].state == "idle"

    run(work(), timeout=50)


@pytest.mark.slow
def test_tools_that_would_be_called_alike_are_told_apart_and_each_runs() -> None:
    async def work() -> None:
        servers = McpServers({"calc": McpServer(command=OLD)})
        try:
            tools = await servers.tools("calc")
            names = names_for_models("calc", ["coding.start", "coding_start"])
            assert set(names.values()) <= set(tools)
            assert names["coding_start"] == "mcp_calc_coding_start"
            assert (await used(servers, names["coding.start"])).startswith("coding.start ")
            assert (await used(servers, names["coding_start"])).startswith("coding_start ")
            box = Toolbox([], {"mcp": servers})
            assert set(await box.find(["mcp:calc/coding.start"])) == {names["coding.start"]}
            assert set(await box.find(["mcp:calc/start"])) == set()
        finally:
            await servers.close()

    run(work(), timeout=50)


LETTERS = st.text("ab._-/ é", min_size=1, max_size=5)


@given(tools=st.lists(LETTERS | LETTERS.map(lambda end: "x" * 70 + end), unique=True, max_size=8))
def test_no_two_tools_of_a_server_have_one_name(tools: list[str]) -> None:
    names = names_for_models("s", tools)
    assert len(set(names.values())) == len(tools)
    assert all(0 < len(name) <= 64 and name.isascii() for name in names.values())
    assert names == names_for_models("s", list(reversed(tools)))


@given(first=LETTERS, second=LETTERS, tools=st.lists(LETTERS, unique=True, max_size=6))
def test_no_two_tools_of_two_servers_have_one_name(first: str, second: str, tools: list[str]) -> None:
    if first != second:
        one, other = names_for_models(first, tools, [second]), names_for_models(second, tools, [first])
        assert not set(one.values()) & set(other.values())


def test_a_name_that_nothing_else_has_is_only_spelled_as_providers_take_it() -> None:
    assert names_for_models("files", ["read", "coding.start", "x" * 70]) == {
        "read": "mcp_files_read",
        "coding.start": "mcp_files_coding_start",
        "x" * 70: "mcp_files_" + "x" * 54,
    }


class Forgetful(BaseHTTPRequestHandler):
    """A server of an older revision that knows a session for a few requests only. server.calls: what it ran."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        state: Any = self.server
        session = self.headers.get("mcp-session-id")
        method = message["method"]
        if session is not None and session != f"s{state.session}":
            return self.say(404, state.body(message))
        if "id" not in message:
            return self.say(202, None)
        if method == "initialize":
            state.session += 1
            capabilities: dict[str, Any] = {"tools": {}}
            info = {"name": "web", "version": "1"}
            result: Any = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        elif method == "tools/list":
            result = {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            state.calls += 1
            result = {"content": [{"type": "text", "text": f"count {state.calls}"}]}
        else:
            unknown = {"code": -32601, "message": "Method not found"}
            return self.say(200, {"jsonrpc": "2.0", "id": message.get("id"), "error": unknown})
        return self.say(200, {"jsonrpc": "2.0", "id": message["id"], "result": result}, f"s{state.session}")

    def do_GET(self) -> None:
        self.say(405, None)

    do_DELETE = do_GET

    def say(self, status: int, body: Any, session: str | None = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if session is not None:
            self.send_header("mcp-session-id", session)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None: ...


BODIES = {
    "nothing": lambda message: None,
    "an error": lambda message: {
        "jsonrpc": "2.0",
        "id": message.get("id"),
        "error": {"code": -32600, "message": "Session not found"},
    },
    "an error of nobody": lambda message: {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32001, "message": "Session not found"},
    },
}


@contextmanager
def forgetful(body: Any) -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Forgetful)
    server.session, server.calls, server.body = 0, 0, body
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_session_that_a_server_has_forgotten_is_opened_anew_and_the_call_made_once(body: Any) -> None:
    async def work(server: Any) -> None:
        servers = McpServers({"calc": McpServer(url=f"http://127.0.0.1:{server.server_port}/mcp")})
        try:
            tools = await servers.tools("calc")
            assert (await tools["mcp_calc_count"].run(NOBODY, {})).value == "count 1"
            server.session += 1  # forgotten: in the midst of a turn, which asks for no tools
            assert (await tools["mcp_calc_count"].run(NOBODY, {})).value == "count 2"
            server.session += 1
            answers = await asyncio.gather(*(tools["mcp_calc_count"].run(NOBODY, {}) for _ in range(3)))
            assert all(not answer.is_error for answer in answers)
            assert server.calls == 5
            server.session += 1  # between two turns
            assert await used(servers, "mcp_calc_count") == "count 6"
        finally:
            await servers.close()

    with forgetful(body) as server:
        run(work(server), timeout=50)
