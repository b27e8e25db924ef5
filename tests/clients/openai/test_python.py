"""Python clients, each in its own environment, against a live server."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .environment import HERE, drive, python_of
from .server import FAULTS, PDF, PICTURE, Clients, check, environment, serving

pytestmark = [pytest.mark.clients, pytest.mark.timeout(500)]
CHATS = ("chat", "chat_stream", "chat_tools")
# The program of each client, and what it must be seen doing besides the table of features.
PROGRAMS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "openai": (
        "drive_openai.py",
        ("stream_tools", "failed", "refused", *CHATS, "chat_structured", "models"),
    ),
    "openai-agents": ("drive_agents.py", ("stream_tools", "failed", *CHATS)),
    "pydantic-ai": ("drive_pydantic_ai.py", ("failed", *CHATS, "chat_structured")),
    "langchain": ("drive_langchain.py", ("failed", *CHATS, "chat_structured")),
}


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with serving(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_client_gets_everything_that_it_can_ask_for(
    client: str, clients: Clients, pytestconfig: pytest.Config
) -> None:
    program, more = PROGRAMS[client]
    python = python_of(pytestconfig, client)
    check(drive([str(python), str(HERE / program)], **environment(clients)), client, *more)


MODELS = """
- model_id: cross
  model_name: openclaw
  api_base: {base}
  api_key_name: cross
  supports_tools: true
  supports_schema: true
  vision: true
- model_id: crossed
  model_name: openclaw
  api_base: {base}
  api_key_name: cross
  responses: true
- model_id: endless
  model_name: openclaw/endless
  api_base: {base}
  api_key_name: cross
"""
FUNCTION = 'def get_weather(city: str) -> str:\n    """The weather."""\n    return f"sunny in {city}"\n'
CITY = '{"type":"object","properties":{"city":{"type":"string"},"degrees":{"type":"integer"}},"required":["city"]}'


class Llm:
    """The command of the `llm` client in a folder of its own."""

    def __init__(self, clients: Clients, python: Path, folder: Path) -> None:
        server = clients.server
        (folder / "extra-openai-models.yaml").write_text(MODELS.format(base=f"{server.url}/v1"), encoding="utf-8")
        (folder / "keys.json").write_text(json.dumps({"cross": server.secrets["operator_token"]}), encoding="utf-8")
        self.command = str(python.with_name("llm"))
        self.environment = {"LLM_USER_PATH": str(folder), "PATH": "/usr/bin:/bin", "HOME": str(folder)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [self.command, *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)

    def ask(self, *words: str, model: str = "cross") -> str:
        done = self.run("-m", model, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def refuses(self, word: str) -> bool:
        done = self.run("-m", "cross", word)
        return done.returncode != 0 and "Error" in done.stderr

    def dies(self, clients: Clients) -> bool:
        """Whether the provider is left when the command is ended in the middle of an answer."""
        clients.endless.forget()
        process = subprocess.Popen(
            [self.command, "-m", "endless", "wait"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            assert os.read(process.stdout.fileno(), 5) == b"begun"
            process.terminate()
            return clients.endless.left()
        finally:
            process.kill()
            process.communicate(timeout=10)


def test_the_llm_command_gets_everything_that_it_can_ask_for(
    clients: Clients, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    llm = Llm(clients, python_of(pytestconfig, "llm"), tmp_path)
    picture, document = tmp_path / "a.png", tmp_path / "a.pdf"
    picture.write_bytes(base64.b64decode(PICTURE.partition(",")[2]))
    document.write_bytes(base64.b64decode(PDF))
    results = {
        "text": llm.ask("--no-stream", "hi"),
        "stream": llm.ask("hi"),
        "chained": llm.ask("-c", "and?"),
        "tools": llm.ask("--functions", FUNCTION, "weather?"),
        "structured": json.loads(llm.ask("--schema", CITY, "city as json")),
        "image": llm.ask("-a", str(picture), "look"),
        "file": llm.ask("-a", str(document), "read"),
        "drip": llm.ask("drip"),
        "faults": [word for words in FAULTS.values() for word in words if not llm.refuses(word)],
        "cancelled": llm.dies(clients),
    }
    check(results, "llm")
    assert llm.ask("hi", model="crossed") == "You said: hi"
