"""One conversation with a tool, by the example as it stands, over real sockets, on every kind of engine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.aio import run
from tests.engines.dialects import BASES, transcript
from tests.engines.llama.test_model import MODELS
from tests.fakes.provider import Provider, play
from tests.live import SCRIPTED, live_server

PROGRAM = Path(__file__).parents[2] / "examples" / "house_agent.py"
RECORDED = """
[[engines]]
name = "embedded"
kind = "{kind}"
base_url = "{url}"
api_key = "sk-canary"
[[models]]
name = "Pepper mini"
engine = "embedded"
upstream = "brain"
prices = {{ input = 1, output = 2 }}
"""


def converse(home: Path, declaration: str) -> str:
    """What the example printed, having come to its end."""
    with live_server(home, declaration=declaration) as server:
        done = subprocess.run(
            [sys.executable, "-W", "error", str(PROGRAM), "--yes", "What is the temperature at home?"],
            env=server.env | {"PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            text=True,
            timeout=240,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.mark.parametrize("kind", sorted(BASES))
def test_a_recorded_provider(kind: str, tmp_path: Path) -> None:
    async def work() -> None:
        asked, said = play(transcript(kind, "parallel_tools")), play(transcript(kind, "text"))
        async with Provider(asked, said) as provider:
            declaration = RECORDED.format(kind=kind, url=provider.url + BASES[kind])
            printed = await asyncio.to_thread(converse, tmp_path, declaration)
            assert "tool:" in printed and "Perché no? 🙂" in printed
            assert len(provider.requests) == 2

    run(work(), timeout=55)


def test_the_scripted_engine(tmp_path: Path) -> None:
    assert "get_home_status()" in converse(tmp_path, SCRIPTED)


@pytest.mark.model
@pytest.mark.timeout(300)
@pytest.mark.skipif(MODELS is None, reason="NO WEIGHTS: run 'crocevia model pull' or set CROCEVIA_TEST_MODELS")
def test_the_embedded_model(tmp_path: Path) -> None:
    assert MODELS is not None
    (tmp_path / "models").symlink_to(MODELS)
    printed = converse(tmp_path, '[[engines]]\nname = "embedded"\nkind = "llama"\n')
    assert "get_home_status()" in printed and "19.5" in printed
