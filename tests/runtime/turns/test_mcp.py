"""Tools of MCP servers: a real child process, allow-lists, faults and servers that die."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from crocevia.config import Settings
from crocevia.core.mcp import McpServer

from .theatre import Theatre, play, tool

pytest.importorskip("mcp")
CHILD = McpServer(command=(sys.executable, str(Path(__file__).with_name("mcp_child.py"))), start_seconds=40)
SCRIPT: dict[str, Any] = {
    "main": [
        {"when": {"after_tool": True}, "say": [{"text": "So: {tool_result}"}]},
        {"when": {"contains": "add"}, "say": [{"tool": "mcp_calc_add", "arguments": {"a": 2, "b": 3}}]},
        {"when": {"contains": "fail"}, "say": [{"tool": "mcp_calc_fail"}]},
        {"when": {"contains": "die"}, "say": [{"tool": "mcp_calc_die"}]},
        {"say": [{"text": "Hello."}]},
    ]
}
AGENT = {"main": {"tools_enabled": tool("mcp:calc")}}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_servers_tools_are_called_and_it_is_started_again_when_it_dies() -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        watcher = await place.watch(chat)

        async def said(message: str) -> tuple[Any, bool, str]:
            turn = await place.say(chat, message)
            await watcher.end(turn, timeout=60)
            event = next(e for e in watcher.all("agent.tool.complete") if e["turn_id"] == turn)
            start = next(e for e in watcher.all("agent.tool.start") if e["turn_id"] == turn)
            return event["data"]["result"], event["data"]["is_error"], start["data"]["kind"]

        result, is_error, kind = await said("add")
        assert (is_error, kind) == (False, "server") and "5" in str(result)
        assert (await said("fail"))[1]
        assert (await said("die"))[1]
        result, is_error, _ = await said("add")
        assert not is_error and "5" in str(result)

    play(SCRIPT, work, timeout=110, agents=AGENT, settings=Settings(mcp={"calc": CHILD}))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_only_allowed_tools_are_there() -> None:
    allowed = McpServer(command=CHILD.command, allow=("fail",), start_seconds=40)

    async def work(place: Theatre) -> None:
        watcher = await place.play("add", timeout=60)
        assert watcher.all("agent.tool.complete")[0]["data"]["result"]["code"] == "unknown_tool"

    play(SCRIPT, work, timeout=110, agents=AGENT, settings=Settings(mcp={"calc": allowed}))


@pytest.mark.parametrize(
    "server",
    [McpServer(command=("/nowhere/at/all",)), McpServer(command=(sys.executable, "-c", "pass")), None],
)
@pytest.mark.timeout(90)
def test_a_server_that_is_not_there_opens_no_turn(server: McpServer | None) -> None:
    async def work(place: Theatre) -> None:
        chat = await place.chat()
        refused = await place.post(chat, "messages", {"message": "add"})
        assert refused.status == 503 and "calc" in refused.json["error"]["message"]
        watcher = await place.watch(chat)
        await watcher.pinged()
        assert watcher.events == []

    play(SCRIPT, work, timeout=80, agents=AGENT, settings=Settings(mcp={"calc": server} if server else {}))
