"""`crocevia waiting`: an operator ends what nobody answers, beside a server that runs and before one that starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from crocevia.cli import main
from crocevia.cli.output import told
from crocevia.runtime.control.audit import entries
from crocevia.storage.database import snapshot
from tests.runtime.turns.theatre import Theatre, play, tool

SPEAKS: dict[str, Any] = {
    "main": [
        {"when": {"after_tool": True}, "say": [{"text": "{tool_result}"}]},
        {"when": {"contains": "write"}, "say": [{"tool": "write", "arguments": {"path": "a", "content": "b"}}]},
        {"say": [{"tool": "phone"}]},
    ]
}
MAIN = {
    "main": {
        "external_tools_enabled": tool("phone"),
        "tools_enabled": tool("write"),
        "permissions": {"write": "ask"},
    }
}


def waiting(home: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["waiting", *args, "--home", str(home)])


def open_requests(home: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(waiting(home, "list", "--json").stdout)["waiting"]
    return found


def test_a_tool_that_its_runner_left_and_an_approval_that_nobody_gives_are_ended() -> None:
    async def work(place: Theatre) -> None:
        home = place.home.path
        assert waiting(home, "list").stdout.strip() == told("waiting_none")
        await place.call("POST", "/api/v1/tools", {"name": "phone", "parameters": {"type": "object"}})
        for message, event, said in (
            ("call", "agent.tool.request", "ended_by_operator"),
            ("write", "approval.request", "approval_denied"),
        ):
            chat = await place.chat()
            watcher = await place.watch(chat)
            await place.say(chat, message)
            asked = (await watcher.until(event))["data"]
            if message == "call":  # a runner that claimed the call, and was never heard of again
                claim = {"call_id": asked["call_id"], "holder": "gone"}
                assert (await place.post(chat, "tool-claim", claim)).status == 204
            (row,) = open_requests(home)
            assert row["id"] in (asked.get("call_id"), asked.get("approval_id")) and row["chat_id"] == chat
            assert row["id"] in waiting(home, "list").stdout
            done = waiting(home, "end", row["id"], "--reason", "the runner is gone")
            assert done.exit_code == 0, done.output
            assert (await watcher.end(timeout=5))["type"] == "turn.completed"
            assert said in watcher.text("main") and "the runner is gone" in watcher.text("main")
            assert open_requests(home) == []
            assert waiting(home, "end", row["id"]).exit_code == 1
        with snapshot(place.home.database) as tx:
            assert [line.action for line in entries(tx)][:2] == ["ended", "ended"]

    play(SPEAKS, work, agents=MAIN)


def test_what_was_ended_while_no_server_ran_counts_when_one_starts() -> None:
    async def work(place: Theatre) -> None:
        await place.call("POST", "/api/v1/tools", {"name": "phone", "parameters": {"type": "object"}})
        chat = await place.chat()
        watcher = await place.watch(chat)
        await place.say(chat, "call")
        asked = (await watcher.until("agent.tool.request"))["data"]
        await place.close()
        assert waiting(place.home.path, "end", asked["call_id"]).exit_code == 0
        await place.open()
        watcher = await place.watch(chat)
        assert (await watcher.end())["type"] == "turn.completed"
        assert "ended_by_operator" in watcher.text("main")

    play(SPEAKS, work, agents=MAIN)
