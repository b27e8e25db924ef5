"""The examples as a newcomer runs them: against the real server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveServer, live_server

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(tmp_path_factory.mktemp("home")) as running:
        yield running


def run(server: LiveServer, *command: str) -> subprocess.CompletedProcess[str]:
    env = server.env | {"PYTHONIOENCODING": "utf-8"}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=40, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ((), 'get_home_status: {"temperature_c": 19.5'),
        (("--yes", "Turn the climate of the salone off"), '"climate": "off"}'),
        (("Turn the climate of the salone off",), "in_attesa_conferma"),
    ],
)
def test_the_house_agent_completes_a_tool_loop(server: LiveServer, arguments: tuple[str, ...], shown: str) -> None:
    ran = run(server, sys.executable, "-W", "error", str(EXAMPLES / "house_agent.py"), *arguments)
    assert ran.returncode == 0, ran.stderr
    assert shown in ran.stdout and "rounds 2" in ran.stdout


def test_the_house_agent_says_what_a_wrong_key_is_answered_with(server: LiveServer) -> None:
    ran = run(server, sys.executable, str(EXAMPLES / "house_agent.py"), "--key", "wrong")
    assert ran.returncode == 1 and "401" in ran.stderr and "non_autorizzato" in ran.stderr


@pytest.mark.skipif(os.name == "nt" or shutil.which("curl") is None, reason="needs sh and curl")
def test_the_curl_example_streams_three_answers(server: LiveServer) -> None:
    ran = run(server, "sh", str(EXAMPLES / "curl.sh"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (ran.stdout.count("event: done"), ran.stdout.count("event: tool_call")) == (3, 1)
