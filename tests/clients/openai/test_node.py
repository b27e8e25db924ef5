"""JavaScript clients and the Codex command line, each with its own packages, against a live server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveServer

from .environment import HERE, drive, node_of
from .server import check, environment, serving

pytestmark = [pytest.mark.clients, pytest.mark.timeout(500)]
NEEDED = ("text", "stream", "tools", "structured", "image", "chained", "failed", "faults", "cancelled")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with serving(tmp_path_factory.mktemp("home")) as running:
        yield running


def run(folder: Path, program: str, server: LiveServer, *args: str) -> Any:
    """The program beside its packages: that is where Node looks for them."""
    copied = folder / program
    shutil.copyfile(HERE / program, copied)
    return drive(["node", program, *args], folder, **environment(server))


def test_the_official_client_gets_everything(server: LiveServer, pytestconfig: pytest.Config) -> None:
    results = run(node_of(pytestconfig, "openai-npm"), "drive_openai.mjs", server)
    check(results, *NEEDED, "file", "chat", "chat_tools")


@pytest.mark.parametrize("provider", ["openai", "open-responses"])
def test_the_ai_sdk_runs_its_loops(provider: str, server: LiveServer, pytestconfig: pytest.Config) -> None:
    results = run(node_of(pytestconfig, "ai-sdk"), "drive_ai_sdk.mjs", server, provider)
    check(results, *NEEDED, "stream_tools")


CODEX = """
model = "openclaw"
model_provider = "crossroads"
[model_providers.crossroads]
name = "crossroads"
base_url = "{base}"
env_key = "CROSSROADS_KEY"
wire_api = "responses"
"""


def codex(folder: Path, home: Path, server: LiveServer, prompt: str) -> list[dict[str, Any]]:
    (home / "config.toml").write_text(CODEX.format(base=f"{server.url}/v1"), encoding="utf-8")
    command = [str(folder / "node_modules/.bin/codex"), "exec", "--skip-git-repo-check", "--json"]
    done = subprocess.run(
        [*command, "--dangerously-bypass-approvals-and-sandbox", prompt],
        cwd=home,
        env={
            "CODEX_HOME": str(home),
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "CROSSROADS_KEY": str(server.secrets["operator_token"]),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_codex_answers_and_runs_a_command(server: LiveServer, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    folder = node_of(pytestconfig, "codex")
    items = [event["item"] for event in codex(folder, tmp_path, server, "hi") if event["type"] == "item.completed"]
    assert any("You said:" in item.get("text", "") for item in items), items
    events = codex(folder, tmp_path, server, "run a command")
    done = [event["item"] for event in events if event["type"] == "item.completed"]
    commands = [item for item in done if item["type"] == "command_execution"]
    assert commands and "crossroads" in commands[0]["aggregated_output"], events
    assert "crossroads" in done[-1]["text"], done
