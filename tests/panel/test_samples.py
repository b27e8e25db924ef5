"""The code that the panel offers works as it stands, against a real server."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crocevia.panel.pages.api import KNOWN
from crocevia.panel.samples import API_KEY, OPERATOR_TOKEN, PROJECT_KEY
from tests.live import SCRIPTED, LiveServer, live_server

RECIPE = '\n[[recipes]]\nencode = "riassunto"\ninstructions = "Riassumi."\n'
SETTINGS = (
    "[gateway.http.endpoints.responses]\nenabled = true\n[gateway.http.endpoints.chatCompletions]\nenabled = true\n"
)
CALLED = [known for known in KNOWN if known.secret is not None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("home")
    with live_server(folder, declaration=SCRIPTED + RECIPE, settings=SETTINGS) as running:
        yield running


def _run(server: LiveServer, program: list[str]) -> str:
    names = {PROJECT_KEY: "project_key", OPERATOR_TOKEN: "operator_token", API_KEY: "api_key"}
    env = server.env | {variable: str(server.secrets[name]) for variable, name in names.items()}
    done = subprocess.run(program, capture_output=True, text=True, env=env, timeout=30, check=False)
    assert done.returncode == 0, f"{program[-1]}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _command(language: str, code: str, folder: Path) -> list[str] | None:
    if language == "Python":
        return [sys.executable, "-W", "error", "-c", code]
    program = shutil.which("bash" if language == "curl" else "node")
    if program is None:
        return None
    if language == "curl":
        return [program, "-euo", "pipefail", "-c", f"{code} -sS --fail-with-body"]
    file = folder / "sample.mjs"
    file.write_text(code, encoding="utf-8")
    return [program, str(file)]


@pytest.mark.parametrize("language", ["curl", "Python", "JavaScript"])
@pytest.mark.parametrize("known", CALLED, ids=lambda known: known.key)
def test_code_from_the_api_page_gets_an_answer(known: Any, language: str, server: LiveServer, tmp_path: Path) -> None:
    samples = {sample.language: sample.code for sample in known.made(server.url, server.secrets["project"])}
    command = _command(language, samples[language], tmp_path)
    if command is None:
        pytest.skip(f"nothing here runs {language}")
    printed = _run(server, command)
    if known.key == "agent":
        assert "event: done" in printed
    else:
        assert json.loads(printed).get("error") is None
