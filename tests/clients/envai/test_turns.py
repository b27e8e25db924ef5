"""Official and own clients drive turns on one live server: messages, streams, tools, cancel, steer, fork, restore."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from envai_client import AsyncEnvaiClient, ClientToolRegistry, EnvaiClient
from tests.live import LiveServer, live_server

from .environment import VERSIONS, drive, python_with

DRIVER = Path(__file__).with_name("drive_turns.py")
SLOW = {"text": "one two three four five six seven eight nine ten", "every_ms": 100}
SCRIPT: list[dict[str, Any]] = [
    {"when": {"after_tool": "add"}, "say": [{"text": "It is {tool_result}."}]},
    {"when": {"contains": "please add"}, "say": [{"tool": "add", "arguments": {"a": 2, "b": 3}}]},
    {"when": {"contains": "slow"}, "say": [SLOW]},
    {"when": {"contains": "louder"}, "say": [{"text": "LOUDER"}]},
    *({"when": {"contains": "how many", "nth": n}, "say": [{"text": f"answer {n}"}]} for n in range(1, 20)),
    {"say": [{"text": "Hello."}]},
]
DECLARED = tomli_w.dumps({"engines": [{"name": "embedded", "kind": "scripted", "script": SCRIPT}]})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    with live_server(tmp_path / "home", declaration=DECLARED) as running:
        ask(running, "POST", "/tools", {"name": "add", "parameters": {"type": "object"}})
        main = next(item for item in ask(running, "GET", "/agents")["data"] if item["name"] == "main")
        ask(running, "PUT", f"/agents/{main['id']}", {"external_tools_enabled": [{"name": "add"}]})
        yield running


def ask(server: LiveServer, method: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        f"{server.url}/api/v1{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": f"Bearer {server.secrets['api_key']}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def chat(server: LiveServer) -> str:
    where = f"/workspaces/{server.secrets['workspace_id']}/chats"
    found: str = ask(server, "POST", where, {"team_id": server.secrets["team_id"]})["data"]["id"]
    return found


@pytest.mark.clients
@pytest.mark.timeout(400)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_official_client_works_with_a_team(
    version: str, server: LiveServer, request: pytest.FixtureRequest
) -> None:
    assert request.config.cache is not None
    python = python_with(version, request.config.cache.mkdir(f"envai-teams-sdk-{version}"))
    chats = [chat(server) for _ in range(3)]
    seen = drive(python, DRIVER, server.url, server.secrets["api_key"], *chats)
    assert (seen["hello"], seen["end"], seen["cost"]) == ("Hello.", "turn.completed", 0)
    assert {"turn.started", "agent.started", "agent.text.delta", "turn.completed"} <= set(seen["events"])
    assert seen["tool"] == ['It is {"sum":5}.', "turn.completed"] and seen["runs"] == [{"a": 2, "b": 3}]
    assert seen["cancel"] == "turn.cancelled"
    assert seen["steer"] == [f"{SLOW['text']}\n\nLOUDER", "turn.completed"]
    assert seen["forked"] == "answer 7"  # the source had six answers; the one that was cut off is not among them
    assert seen["restored"] == ["restored", None] and seen["after"] == "answer 2"
    assert seen["requests"] > 30
    assert "client_tools" in seen["capabilities"]


def registry(runs: list[Any]) -> ClientToolRegistry:
    tools = ClientToolRegistry()

    def add(a: float, b: float) -> dict[str, float]:
        runs.append((a, b))
        return {"sum": a + b}

    schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
    tools.register_tool("add", add, schema, timeout=60)
    return tools


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("version", [2, 3])
def test_our_own_client_works_with_a_team(version: int, server: LiveServer, tmp_path: Path) -> None:
    first, empty, runs = chat(server), chat(server), []
    options = {"api_key": server.secrets["api_key"], "base_url": server.url}
    with EnvaiClient(**options, contract_version=version) as client:
        hello = client.chats.send_and_wait(first, "hello", timeout=60)
        assert (hello.text, hello.cost) == ("Hello.", 0)
        added = client.chats.send_and_wait(first, "please add", timeout=60, tools=registry(runs))
        assert added.text == 'It is {"sum":5}.' and runs == [(2, 3)]
        client.chats.fork(first, empty)
        assert client.chats.send_and_wait(empty, "how many", timeout=60).text == "answer 4"
    asyncio.run(steered(options, version, first))


async def steered(options: dict[str, str], version: int, chat_id: str) -> None:
    async with AsyncEnvaiClient(**options, contract_version=version) as client:
        acted = False
        async with client.chats.send_and_stream(chat_id, "slow", timeout=60) as turn:
            async for event in turn:
                if event.type == "agent.text.delta" and not acted:
                    acted = True
                    await client.chats.steer(chat_id, "louder")
        assert turn.result().text.endswith("LOUDER")
