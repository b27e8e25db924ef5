"""Tool loops of two rounds, by clients of their own making, before a provider that repeats its ids."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .environment import HERE, drive, node_of, python_of
from .repeating import repeating_provider
from .server import Clients, environment, serving
from .test_node import Codex

pytestmark = [pytest.mark.clients, pytest.mark.timeout(500)]
SUNNY: Final = "It took 2 rounds: sunny in Rome and sunny in Oslo."
CURRENT: Final = "gpt-5.6"  # a model that the command line knows: with its own tools, items and instructions
DECLARED: Final = """
[[engines]]
name = "repeating"
kind = "openai-chat"
base_url = "{url}/v1"

[[models]]
name = "gpt-5.6"
engine = "repeating"
upstream = "repeating"

[[agents]]
name = "repeating"
mode = "primary"
model = "gpt-5.6"
system_prompt = "Use tools."
"""


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with repeating_provider() as url, serving(tmp_path_factory.mktemp("home"), DECLARED.format(url=url)) as running:
        yield running


@pytest.mark.parametrize(("client", "ways"), [("litellm", 1), ("langgraph", 2), ("autogen", 1)])
def test_a_python_client_completes_two_rounds(
    client: str, ways: int, clients: Clients, pytestconfig: pytest.Config
) -> None:
    python = python_of(pytestconfig, client)
    assert drive([str(python), str(HERE / "drive_loops.py"), client], **environment(clients)) == [SUNNY] * ways


def test_the_agents_of_node_complete_two_rounds(clients: Clients, pytestconfig: pytest.Config) -> None:
    folder = node_of(pytestconfig, "openai-agents-npm")
    shutil.copyfile(HERE / "drive_agents.mjs", folder / "drive_agents.mjs")
    assert drive(["node", "drive_agents.mjs"], folder, **environment(clients)) == [SUNNY] * 2


@pytest.mark.parametrize("model", [CURRENT, "openclaw/repeating"])
def test_codex_completes_two_rounds(model: str, clients: Clients, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    codex = Codex(clients, node_of(pytestconfig, "codex"), tmp_path)
    items = codex.ask("-m", model, "weather?")
    ran = [item["aggregated_output"].strip() for item in items if item["type"] == "command_execution"]
    assert ran == ["Rome", "Oslo"]
    assert items[-1]["text"].startswith("It took 2 rounds")
