"""Runs inside the official client's own environment: turns on a live server. Arguments: URL, API key, three chat ids.

Prints what it saw as JSON; fails with the client's own error otherwise.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import envai
from envai.tool_state import SQLiteToolState

URL, KEY, CHAT, EMPTY, OTHER = sys.argv[1:6]
runs: list[Any] = []


def add(arguments: dict[str, Any], context: Any) -> Any:
    runs.append(arguments)
    return {"sum": arguments["a"] + arguments["b"]}


def with_tools(client: Any) -> tuple[str, str]:
    registry = envai.ClientToolRegistry()
    schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
    registry.register("add", add, schema)
    runner, text, end = None, "", ""
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteToolState(str(Path(folder) / "ledger.db"))
        for event in client.chats.send_and_stream(CHAT, "please add", timeout=60):
            if runner is None:
                runner = envai.ClientToolRunner(
                    client, registry, store=store, scope="test", chat_id=CHAT, turn_id=event.turn_id
                )
            runner.consume(event)
            if event.type == "agent.text.done":
                text = event.data.text
            end = event.type
        assert runner is not None
        runner.close()
        assert runner.errors == [], runner.errors
    return text, end


def interrupted(client: Any, act: Any) -> tuple[str, str]:
    text, end, acted = "", "", False
    for event in client.chats.send_and_stream(CHAT, "slow", timeout=60):
        if event.type == "agent.text.delta" and not acted:
            acted = True
            act()
        if event.type == "agent.text.done":
            text = event.data.text
        end = event.type
    return text, end


def main() -> None:
    with envai.EnvaiClient(KEY, base_url=URL) as client:
        hello = client.chats.send_and_wait(CHAT, "hello", timeout=60)
        seen: dict[str, Any] = {"hello": hello.text, "cost": hello.cost, "end": hello.terminal_event.type}
        seen["events"] = sorted({event.type for event in client.chats.send_and_stream(CHAT, "hello", timeout=60)})
        seen["tool"] = with_tools(client)
        seen["runs"] = runs
        seen["cancel"] = interrupted(client, lambda: client.cancel_chat_turn(CHAT))[1]
        seen["steer"] = interrupted(client, lambda: client.steer_chat_turn(CHAT, body={"text": "louder"}))
        client.fork_chat(CHAT, body={"destination_chat_id": EMPTY})
        seen["forked"] = client.chats.send_and_wait(EMPTY, "how many", timeout=60).text
        items = [{"kind": "compacted", "content": "before"}, {"kind": "assistant", "content": "yes"}]
        restored = client.restore_chat(OTHER, body={"orchestrator_context": items})
        seen["restored"] = [restored.status, restored.turn_id]
        seen["after"] = client.chats.send_and_wait(OTHER, "how many", timeout=60).text
        seen["capabilities"] = sorted(client.get_capabilities().features)
        seen["requests"] = request_stream(client)
    json.dump(seen, sys.stdout)


def request_stream(client: Any) -> int:
    """The stream from its beginning until its first ping: every event of every turn so far."""
    count = 0
    with client.chats.events(CHAT) as stream:
        for event in stream:
            if event.type == "ping":
                return count
            count += 1
    raise AssertionError("no ping")


main()
