"""The curl example asks three times and shows the streams."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.examples.pepper_server import delta, done, pepper, stream
from tests.live import clean_env

PROGRAM = Path(__file__).parents[2] / "examples" / "curl.sh"
pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def curl(**env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", str(PROGRAM)], env=clean_env() | env, capture_output=True, text=True, timeout=30)


def test_it_streams_an_answer_a_tool_call_and_the_answer_after_it() -> None:
    with pepper(stream(delta("Ciao"), done("end_turn"))) as server:
        ran = curl(CROCEVIA_URL=server.url, CROCEVIA_PROJECT_KEY="secret-key", CROCEVIA_PROJECT="home")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("event: done") == 3
    assert [len(body["messages"]) for _, body in server.requests] == [1, 1, 3]
    assert ["tools" in body for _, body in server.requests] == [False, True, True]
    assert {(h["X-Pepper-Key"], h["X-Pepper-Project"]) for h, _ in server.requests} == {("secret-key", "home")}


def test_it_fails_with_the_servers_words() -> None:
    with pepper((401, {}, b'{"error": {"code": "non_autorizzato", "message": "No."}}')) as server:
        ran = curl(CROCEVIA_URL=server.url, CROCEVIA_PROJECT_KEY="wrong")
    assert ran.returncode != 0 and "non_autorizzato" in ran.stdout


def test_it_says_which_variable_is_missing() -> None:
    ran = curl()
    assert ran.returncode != 0 and "CROCEVIA_PROJECT_KEY" in ran.stderr


def test_it_can_be_run_as_a_program() -> None:
    assert os.access(PROGRAM, os.X_OK)
