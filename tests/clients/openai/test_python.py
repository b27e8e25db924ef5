"""Python clients, each in its own environment, against a live server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveServer

from .environment import HERE, drive, python_of
from .server import check, environment, serving

FAULTS = ("faults", "drip")
pytestmark = [pytest.mark.clients, pytest.mark.timeout(500)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with serving(tmp_path_factory.mktemp("home")) as running:
        yield running


def test_the_official_client_gets_everything(server: LiveServer, pytestconfig: pytest.Config) -> None:
    python = python_of(pytestconfig, "openai")
    results = drive([str(python), str(HERE / "drive_openai.py")], **environment(server))
    check(results, "text", "stream", "tools", "stream_tools", "structured", "image", "file", "chained", "cancelled")
    check(
        results, "failed", "faults", "drip", "refused", "chat", "chat_stream", "chat_tools", "chat_structured", "models"
    )


def test_openai_agents_runs_its_loops(server: LiveServer, pytestconfig: pytest.Config) -> None:
    python = python_of(pytestconfig, "openai-agents")
    results = drive([str(python), str(HERE / "drive_agents.py")], **environment(server))
    check(
        results,
        "text",
        "stream",
        "tools",
        "stream_tools",
        "structured",
        "image",
        "chained",
        "failed",
        "faults",
        "drip",
        "chat_tools",
    )


def test_pydantic_ai_runs_its_loops(server: LiveServer, pytestconfig: pytest.Config) -> None:
    python = python_of(pytestconfig, "pydantic-ai")
    results = drive([str(python), str(HERE / "drive_pydantic_ai.py")], **environment(server))
    check(
        results,
        "text",
        "stream",
        "tools",
        "structured",
        "image",
        "file",
        "chained",
        "failed",
        "faults",
        "drip",
        "chat_tools",
    )


def test_langchain_runs_its_loops(server: LiveServer, pytestconfig: pytest.Config) -> None:
    python = python_of(pytestconfig, "langchain")
    results = drive([str(python), str(HERE / "drive_langchain.py")], **environment(server))
    check(
        results,
        "text",
        "stream",
        "tools",
        "structured",
        "image",
        "file",
        "chained",
        "failed",
        "faults",
        "drip",
        "chat_tools",
    )


MODELS = """
- model_id: cross
  model_name: openclaw
  api_base: {base}
  api_key_name: cross
  supports_tools: true
"""
FUNCTION = 'def get_weather(city: str) -> str:\n    """The weather."""\n    return f"sunny in {city}"\n'


def test_the_llm_command_answers_and_calls_a_tool(
    server: LiveServer, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    llm = python_of(pytestconfig, "llm").with_name("llm")
    (tmp_path / "extra-openai-models.yaml").write_text(MODELS.format(base=f"{server.url}/v1"), encoding="utf-8")
    (tmp_path / "keys.json").write_text(json.dumps({"cross": server.secrets["operator_token"]}), encoding="utf-8")

    def ask(*words: str) -> str:
        done = subprocess.run(
            [str(llm), "-m", "cross", *words],
            env={"LLM_USER_PATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    assert ask("hi") == "You said: hi"
    assert ask("--no-stream", "hi") == "You said: hi"
    assert ask("--functions", FUNCTION, "weather?") == "It is sunny in Rome."


@pytest.mark.parametrize("fault", ["busy", "drop", "mute", "break", "hush", "spoil"])
def test_the_llm_command_fails_when_the_provider_does(
    fault: str, server: LiveServer, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    llm = python_of(pytestconfig, "llm").with_name("llm")
    (tmp_path / "extra-openai-models.yaml").write_text(MODELS.format(base=f"{server.url}/v1"), encoding="utf-8")
    (tmp_path / "keys.json").write_text(json.dumps({"cross": server.secrets["operator_token"]}), encoding="utf-8")
    done = subprocess.run(
        [str(llm), "-m", "cross", fault],
        env={"LLM_USER_PATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0 and "Error" in done.stderr
