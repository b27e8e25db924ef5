"""The examples, run as their users run them: as programs, against a server."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from conformance.runner.fake_server import FakeServer
from scenario import load

EXAMPLES = Path(__file__).resolve().parents[3] / "examples/envai"
FLOWS = {case["name"]: case for case in load("flows/scenarios.json")}
TURN = FLOWS["chat created, stream opened, message sent, deltas, turn.completed"]
TOOLS = load("tools/scenarios.json")
ACK = {"X-Envai-Contract-Version": "3"}
STAMPS = {"created_at": "2026-08-17T14:00:00Z", "updated_at": "2026-08-17T14:00:00Z"}


def start(server: FakeServer, name: str, *args: str, **env: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "ENVAI_BASE_URL": server.origin, "ENVAI_API_KEY": "envai_sk_example", **env}
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *args]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def run(server: FakeServer, name: str, *args: str, **env: str) -> tuple[int, str, str]:
    process = start(server, name, *args, **env)
    out, err = await asyncio.to_thread(process.communicate, timeout=40)
    return process.returncode, out, err


def route(method: str, path: str, status: int, body: Any) -> dict[str, Any]:
    return {"on": f"{method} {path}", "replies": [{"status": status, "headers": ACK, "json": body}]}


def test_workspace_and_chat_prints_the_chat() -> None:
    agent = {
        "id": "agt_1",
        "user_id": "u",
        "name": "a",
        "description": None,
        "system_prompt": "s",
        "model": None,
        "mode": "primary",
        "tools_enabled": [],
        "external_tools_enabled": [{"name": "send_email"}],
        "permissions": {},
        "can_write_knowledge": False,
        "can_write_skills": False,
        "config": {},
        **STAMPS,
    }
    tool = {
        "id": "twl_1",
        "name": "send_email",
        "kind": "client",
        "description": None,
        "parameters": {},
        "timeout_seconds": 60,
        **STAMPS,
    }
    team = {
        "id": "team_1",
        "user_id": "u",
        "name": "t",
        "description": None,
        "orchestrator_id": "agt_1",
        "members": [],
        **STAMPS,
    }
    space = {"id": "wsp_abcdef", "user_id": "u", "name": "Sales", "metadata": {}, **STAMPS}
    chat = {"id": "cht_1", "workspace_id": "wsp_abcdef", "user_id": "u", "team_id": "team_1", "title": None, **STAMPS}
    script = [
        route("POST", "/api/v1/workspaces", 201, {"data": space}),
        route("GET", "/api/v1/tools", 200, {"data": []}),
        route("POST", "/api/v1/tools", 201, {"data": tool}),
        route("POST", "/api/v1/agents", 201, {"data": agent}),
        route("POST", "/api/v1/teams", 201, {"data": team}),
        route("POST", "/api/v1/workspaces/wsp_abcdef/chats", 201, {"data": chat}),
    ]

    async def play() -> None:
        async with FakeServer(script) as server:
            assert await run(server, "workspace_and_chat.py") == (0, "cht_1\n", "")
            assert server.surprises == []
            assert server.asked[3].json()["external_tools_enabled"] == [{"name": "send_email"}]

    asyncio.run(play())


def test_streaming_turn_prints_the_text_and_what_it_cost() -> None:
    async def play() -> None:
        async with FakeServer(TURN["server"]) as server:
            chat = TURN["steps"][1]["args"][0]
            code, out, err = await run(server, "streaming_turn.py", "hello", ENVAI_CHAT_ID=chat)
            assert (code, out) == (0, "Ciao\n"), err
            assert err == "[turn.completed, 5 tokens, cost 0.250000 USD]\n"

    asyncio.run(play())


def test_client_tool_run_twice_with_a_crash_in_the_middle_sends_one_mail(tmp_path: Path) -> None:
    case = next(c for c in TOOLS if c["name"] == "a verified request runs its handler and delivers")
    text = msgspec.json.encode(signed_again(case)).decode()
    script = msgspec.json.decode(text)

    async def play() -> None:
        async with FakeServer(script) as server:
            chat = case["steps"][0]["args"][0]
            code, _, _ = await run(server, "client_tool.py", "--crash", "--folder", str(tmp_path), ENVAI_CHAT_ID=chat)
            assert code == -signal.SIGKILL
            server._waits.clear()
            server._marks.clear()
            code, _out, err = await run(server, "client_tool.py", "--folder", str(tmp_path), ENVAI_CHAT_ID=chat)
            assert code == 0, err
            lines = (tmp_path / "outbox.txt").read_text().splitlines()
            assert len(lines) == 1, "the handler ran once"
            posts = [asked.json() for asked in server.asked if asked.path.endswith("/tool-output")]
            assert [(post["output"], post["is_error"]) for post in posts] == [('{"sent":true}', False)]

    asyncio.run(play())


def signed_again(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The scenario with the arguments of the example's tool, signed by the published test key, and a second stream."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
    try:
        from fixtures.tool_cases import request
    finally:
        sys.path.pop(0)
    asked = request(3, args={"to": "a@example.com", "subject": "The offer"})
    script: list[dict[str, Any]] = []
    for entry in case["server"]:
        replies = entry["replies"]
        if entry["on"].endswith("/events"):
            items = [{"event": asked} if is_request(item) else item for item in replies[0]["stream"]]
            again = [item for item in items if "messages" not in item.get("wait", "")]
            replies = [{**replies[0], "stream": items}, {**replies[0], "stream": again}]
        script.append(
            {
                "on": entry["on"],
                "replies": replies * (2 if entry["on"].startswith("GET /api") or "jwks" in entry["on"] else 1),
            }
        )
    return script


def is_request(item: dict[str, Any]) -> bool:
    return item.get("event", {}).get("type") == "agent.tool.request"


def test_webhook_receiver_takes_each_event_once(tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
    try:
        from fixtures import webhook_cases
    finally:
        sys.path.pop(0)
    vectors = load("webhooks/vectors.json")
    now = int(time.time())
    made = [webhook_cases.processed(), webhook_cases.deleted(), webhook_cases.ended()]
    deliveries = [webhook_cases.delivery(event, at=now) for event in made]
    keys = {
        "on": "GET /.well-known/wiki-webhook-jwks.json",
        "replies": [{"status": 200, "json": {"keys": vectors["keys"]}}] * 2,
    }

    async def play() -> None:
        async with FakeServer([keys]) as server:
            database = str(tmp_path / "w.sqlite3")
            process = start(
                server,
                "webhook_receiver.py",
                "--port",
                "0",
                "--database",
                database,
                ENVAI_WORKSPACE_ID=vectors["workspace_id"],
            )
            try:
                line = await asyncio.to_thread(process.stdout.readline)  # type: ignore[union-attr]
                url = "http://" + line.split()[-1]
                async with httpx2.AsyncClient(trust_env=False) as client:
                    for number in (1, 0, 2, 2, 1, 0, 0, 1, 2):
                        assert await post(client, url, deliveries[number]) == 204
                    forged = {**deliveries[0], "body": deliveries[1]["body"]}
                    assert await post(client, url, forged) == 401
            finally:
                process.kill()
                await asyncio.to_thread(process.communicate)
            jobs = sqlite3.connect(database).execute("SELECT event_type FROM jobs ORDER BY rowid").fetchall()
            assert [kind for (kind,) in jobs] == ["wiki.outbox.file.deleted", "wiki.sync.completed"]

    asyncio.run(play())


async def post(client: httpx2.AsyncClient, url: str, delivery: dict[str, Any]) -> int:
    import base64

    response = await client.post(url, content=base64.b64decode(delivery["body"]), headers=delivery["headers"])
    return response.status_code
