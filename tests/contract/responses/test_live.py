"""The responses door of a real process: its specification's commands as they stand, and answers that outlive it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.requirements import requirement
from tests.live import LiveServer, clean_env, live_server, wait_until_up

SETTINGS = "[gateway.http.endpoints.responses]\nenabled = true\n"
SCRIPT = """
[[engines]]
name = "embedded"
kind = "scripted"
script = [
  { when = { contains = "slowly" }, say = [{ text = "one two three four five six seven eight", every_ms = 250 }] },
  { say = [{ text = "You said: {last_user}" }] },
]
"""
# As the specification has them: only the address and the token are others.
WHOLE = r"""
curl -sS http://127.0.0.1:18789/v1/responses \
  -H 'Authorization: Bearer YOUR_TOKEN' \
  -H 'Content-Type: application/json' \
  -H 'x-openclaw-agent-id: main' \
  -d '{
    "model": "openclaw",
    "input": "hi"
  }'
"""
STREAM = r"""
curl -N http://127.0.0.1:18789/v1/responses \
  -H 'Authorization: Bearer YOUR_TOKEN' \
  -H 'Content-Type: application/json' \
  -H 'x-openclaw-agent-id: main' \
  -d '{
    "model": "openclaw",
    "stream": true,
    "input": "hi"
  }'
"""
ITEMS: dict[str, Any] = {
    "call": {"type": "function_call", "call_id": "call_123", "name": "get_weather", "arguments": "{}"},
    "output": {"type": "function_call_output", "call_id": "call_123", "output": '{"temperature": "72F"}'},
    "file": {
        "type": "input_file",
        "source": {
            "type": "base64",
            "media_type": "text/plain",
            "data": "SGVsbG8gV29ybGQh",
            "filename": "hello.txt",
        },
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(tmp_path_factory.mktemp("home"), declaration=SCRIPT, settings=SETTINGS) as running:
        yield running


def ask(server: LiveServer, path: str, body: Any = None) -> dict[str, Any]:
    token = server.secrets["operator_token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def sh(server: LiveServer, command: str) -> str:
    host = server.url.removeprefix("http://")
    command = command.replace("127.0.0.1:18789", host).replace("YOUR_TOKEN", str(server.secrets["operator_token"]))
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=30, env=clean_env(), check=True
    )
    return done.stdout


@requirement("R-DOC-1")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_specification_work_as_they_stand(server: LiveServer) -> None:
    made = json.loads(sh(server, WHOLE))
    assert (made["object"], made["status"], made["model"]) == ("response", "completed", "openclaw")
    assert made["output"][0]["content"][0]["text"] == "You said: hi"
    frames = sh(server, STREAM).split("\n\n")
    assert frames[0].startswith("event: response.created\ndata: {") and frames[-2] == "data: [DONE]"
    assert frames[-3].startswith("event: response.completed\n")


@requirement("R-DOC-1")
def test_the_items_of_the_specification_work_as_they_stand(server: LiveServer) -> None:
    rounds = [{"role": "user", "content": "weather?"}, ITEMS["call"], ITEMS["output"]]
    assert ask(server, "/v1/responses", {"model": "openclaw", "input": rounds})["status"] == "completed"
    parts = [{"type": "input_text", "text": "read"}, ITEMS["file"]]
    message = {"type": "message", "role": "user", "content": parts}
    made = ask(server, "/v1/responses", {"model": "openclaw", "input": [message]})
    assert made["output"][0]["content"][0]["text"] == "You said: read"


@requirement("R-RUN-10")
def test_a_background_run_outlives_kill_9(tmp_path: Path) -> None:
    with live_server(tmp_path, declaration=SCRIPT, settings=SETTINGS) as server:
        body = {"model": "openclaw", "input": "slowly", "background": True}
        made = ask(server, "/v1/responses", body)
        path = f"/v1/responses/{made['id']}"
        until(lambda: ask(server, path)["status"] == "in_progress")
        with urllib.request.urlopen(follow(server, path), timeout=20) as told:
            until(lambda: b"two" in told.readline())  # some of it is said
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(10)
        port = server.url.rpartition(":")[2]
        command = [sys.executable, "-m", "crocevia.cli", "serve", "--home", str(tmp_path), "--port", port]
        with (tmp_path / "again.log").open("wb") as log:
            again = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=clean_env())
        try:
            wait_until_up(server.url, again, tmp_path)
            seen = ask(server, path)
            assert seen["status"] in ("in_progress", "completed") and seen["error"] is None
            until(lambda: ask(server, path)["status"] == "completed")
            last = ask(server, path)
            assert last["output"][0]["content"][0]["text"] == "one two three four five six seven eight"
            with urllib.request.urlopen(follow(server, path), timeout=20) as told:
                assert told.read().endswith(b"data: [DONE]\n\n")
        finally:
            again.send_signal(signal.SIGINT)
            again.wait(15)


def follow(server: LiveServer, path: str) -> urllib.request.Request:
    token = server.secrets["operator_token"]
    return urllib.request.Request(
        f"{server.url}{path}?stream=true&starting_after=1", headers={"Authorization": f"Bearer {token}"}
    )


def until(reached: Any, seconds: float = 20) -> None:
    """A bounded poll on another process."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.05)
