"""The examples of our own client as a newcomer runs them: one after the other, against the real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tests.live import LiveServer, live_server

EXAMPLES = Path(__file__).parents[2] / "examples/envai"
MAIL = {"tool": "send_email", "arguments": {"to": "a@example.com", "subject": "The offer"}}
SCRIPT: list[dict[str, Any]] = [
    {"when": {"after_tool": "send_email"}, "say": [{"text": "Done: {tool_result}"}]},
    {"when": {"contains": "write to"}, "say": [MAIL]},
    {"say": [{"text": "I can write e-mails.", "every_ms": 5}]},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    declaration = tomli_w.dumps({"engines": [{"name": "embedded", "kind": "scripted", "script": SCRIPT}]})
    with live_server(tmp_path_factory.mktemp("home"), declaration=declaration) as running:
        yield running


@pytest.fixture(scope="module")
def chat(server: LiveServer) -> str:
    first, again = run(server, "workspace_and_chat.py"), run(server, "workspace_and_chat.py")
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert first.stdout.startswith("cht_") and first.stdout != again.stdout
    return first.stdout.strip()


def environment(server: LiveServer, **more: str) -> dict[str, str]:
    return server.env | {"ENVAI_BASE_URL": server.url, "ENVAI_API_KEY": str(server.secrets["api_key"])} | more


def run(server: LiveServer, name: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    return subprocess.run(command, env=environment(server, **more), capture_output=True, text=True, timeout=40)


def test_a_turn_is_printed_as_it_is_written(server: LiveServer, chat: str) -> None:
    run(server, "streaming_turn.py", ENVAI_CHAT_ID=chat)  # a first turn may pay for the chat's title too
    ran = run(server, "streaming_turn.py", "What can you do?", ENVAI_CHAT_ID=chat)
    assert (ran.returncode, ran.stdout) == (0, "I can write e-mails.\n"), ran.stderr
    assert ran.stderr == "[turn.completed, 4 tokens, cost 0.000000 USD]\n"


@pytest.mark.skipif(os.name == "nt", reason="the example dies of signal 9")
def test_a_tool_that_dies_in_the_middle_has_sent_one_mail(server: LiveServer, chat: str, tmp_path: Path) -> None:
    command = ("client_tool.py", "--folder", str(tmp_path))
    died = run(server, *command, "--crash", ENVAI_CHAT_ID=chat)
    assert died.returncode == -9, died.stderr
    ran = run(server, *command, ENVAI_CHAT_ID=chat)
    assert ran.returncode == 0, ran.stderr
    lines = (tmp_path / "outbox.txt").read_text().splitlines()
    assert len(lines) == 1 and lines[0].endswith("\ta@example.com\tThe offer")
    assert ran.stdout.splitlines()[-2].endswith("turn.completed")
    assert 'Done: {\\"sent\\":true}' in said(server, chat)


def said(server: LiveServer, chat: str) -> str:
    """The chat's stored events, as the finite replay tells them."""
    request = urllib.request.Request(
        f"{server.url}/api/v1/chats/{chat}/events",
        headers={"authorization": f"Bearer {server.secrets['api_key']}", "x-envai-contract-version": "2"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def test_a_webhook_that_nobody_signed_is_not_taken(server: LiveServer, tmp_path: Path) -> None:
    """This server has no wiki and publishes no keys for one: the receiver cannot verify, and says so."""
    database = tmp_path / "webhooks.sqlite3"
    command = [sys.executable, "-W", "error", str(EXAMPLES / "webhook_receiver.py"), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--database", str(database)],
        env=environment(server, ENVAI_WORKSPACE_ID=str(server.secrets["workspace_id"])),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = "http://" + process.stdout.readline().split()[-1]
        assert [post(url, {}), post(url, signed())] == [401, 503]
    finally:
        process.kill()
        process.communicate(timeout=10)
    assert not database.exists()


def signed() -> dict[str, str]:
    """The form of a signature, by a key that nobody published."""
    return {
        "Envai-Webhook-Id": "evt_1",
        "Envai-Webhook-Timestamp": str(int(time.time())),
        "Envai-Webhook-Key-Id": "sig_1",
        "Envai-Webhook-Signature": urlsafe_b64encode(bytes(64)).rstrip(b"=").decode(),
    }


def post(url: str, headers: dict[str, str]) -> int:
    request = urllib.request.Request(url, data=json.dumps({}).encode(), headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code
