"""JavaScript clients and the Codex command line against a live server; skipped where there is no npm."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from .environment import HERE, drive, node_of
from .server import FAULTS, PICTURE, Clients, check, environment, serving

pytestmark = [pytest.mark.clients, pytest.mark.timeout(500)]
# The packages, the program and its arguments for each client, and what it must be seen doing besides the features.
PROGRAMS: Final[dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    "openai-npm": ("openai-npm", ("drive_openai.mjs",), ("failed", "chat", "chat_tools")),
    "ai-sdk/openai": ("ai-sdk", ("drive_ai_sdk.mjs", "openai"), ("stream_tools", "failed")),
    "ai-sdk/open-responses": ("ai-sdk", ("drive_ai_sdk.mjs", "open-responses"), ("stream_tools", "failed")),
}


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with serving(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_client_gets_everything_that_it_can_ask_for(
    client: str, clients: Clients, pytestconfig: pytest.Config
) -> None:
    packages, (program, *arguments), more = PROGRAMS[client]
    folder = node_of(pytestconfig, packages)
    copied = folder / program  # beside its packages: that is where Node looks for them
    shutil.copyfile(HERE / program, copied)
    check(drive(["node", program, *arguments], folder, **environment(clients)), client, *more)


CODEX = """
model = "openclaw"
model_provider = "crossroads"
[model_providers.crossroads]
name = "crossroads"
base_url = "{base}"
env_key = "CROSSROADS_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
SHOWN: Final = '<image name=[Image #1] path="{path}"></image>'  # it says so in a text before the prompt
CITY: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


class Codex:
    """The command in a home of its own."""

    def __init__(self, clients: Clients, folder: Path, home: Path) -> None:
        server = clients.server
        (home / "config.toml").write_text(CODEX.format(base=f"{server.url}/v1"), encoding="utf-8")
        self.home = home
        self.command = [str(folder / "node_modules/.bin/codex"), "exec"]
        self.environment = {
            "CODEX_HOME": str(home),
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "CROSSROADS_KEY": str(server.secrets["operator_token"]),
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        how = ("--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox")
        return subprocess.Popen(
            [*self.command, *words, *how],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # it is a launcher and the program itself: both end together
        )

    def run(self, *words: str) -> tuple[int, list[dict[str, Any]], str]:
        """Its status, its events, and all that it printed."""
        process = self.start(*words)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            end(process)
        return process.returncode, [json.loads(line) for line in out.splitlines() if line.startswith("{")], out + err

    def ask(self, *words: str) -> list[dict[str, Any]]:
        """The items that came of it."""
        status, events, printed = self.run(*words)
        assert status == 0, printed
        return [event["item"] for event in events if event["type"] == "item.completed"]

    def says(self, *words: str) -> str:
        items = self.ask(*words)
        return str([item["text"] for item in items if item["type"] == "agent_message"][-1])

    def refuses(self, word: str) -> bool:
        status, events, printed = self.run(word)
        return status != 0 and "turn.failed" in [event["type"] for event in events] and bool(printed)

    def dies(self, clients: Clients) -> bool:
        """Whether the provider is left when the command is ended in the middle of an answer."""
        clients.endless.forget()
        process = self.start("-m", "openclaw/endless", "wait")
        try:
            clients.endless.begun.get(timeout=60)
            process.terminate()
            return clients.endless.left()
        finally:
            end(process)


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=10)


def test_codex_gets_everything_that_it_can_ask_for(
    clients: Clients, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    codex = Codex(clients, node_of(pytestconfig, "codex"), tmp_path)
    picture, schema = tmp_path / "a.png", tmp_path / "city.json"
    picture.write_bytes(base64.b64decode(PICTURE.partition(",")[2]))
    schema.write_text(json.dumps(CITY), encoding="utf-8")
    text = codex.says("hi")
    items = codex.ask("run a command")
    (command,) = [item for item in items if item["type"] == "command_execution"]
    assert "crossroads" in command["aggregated_output"] and "crossroads" in items[-1]["text"], items
    results = {
        "text": text,
        "stream": text,  # it asks for nothing but streams
        "structured": json.loads(codex.says("city as json", "--output-schema", str(schema))),
        "image": codex.says("look", "-i", str(picture)).replace(SHOWN.format(path=picture), ""),
        "drip": codex.says("drip"),
        "chained": codex.says("resume", "--last", "and?"),
        "faults": [word for words in FAULTS.values() for word in words if not codex.refuses(word)],
        "cancelled": codex.dies(clients),
    }
    check({**results, "tools": "It is sunny in Rome."}, "codex")
