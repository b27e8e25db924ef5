"""Every block of the pages that can run, runs; what cannot is a `console` or `text` block."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.docs.blocks import PAGES, ROOT, Block, blocks
from tests.live import LiveServer, clean_env, crocevia, live_server

SERVER_TABLES = {"server", "gateway", "turns", "limits", "search", "mcp"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    settings = "[gateway.http.endpoints.responses]\nenabled = true\n"
    with live_server(tmp_path_factory.mktemp("home"), settings=settings) as running:
        yield running


def run_block(server: LiveServer, text: str, *command: str) -> str:
    program = text.replace("http://127.0.0.1:8111", server.url)
    done = subprocess.run(
        [*command, program], cwd=ROOT, env=server.env, capture_output=True, text=True, timeout=45, check=False
    )
    assert done.returncode == 0, f"{program}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("block", blocks("bash"), ids=str)
def test_a_shell_block_runs_and_answers(block: Block, server: LiveServer) -> None:
    printed = run_block(server, block.text, "bash", "-euo", "pipefail", "-c")
    if "/agent" in block.text and '"stream": true' in block.text:
        assert "event: done" in printed and "event: error" not in printed
    if "/events" in block.text:
        assert '"type":"turn.completed"' in printed
    elif "/v1/" in block.text:
        assert printed.startswith(("{", "event: ")) and '"error":{' not in printed


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_a_python_block_runs(block: Block, server: LiveServer) -> None:
    run_block(server, block.text, sys.executable, "-W", "error", "-c")


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_a_toml_block_is_accepted_by_the_command_that_reads_it(block: Block, tmp_path: Path) -> None:
    tables = tomllib.loads(block.text)
    crocevia("init", "--json", home=tmp_path)
    if tables.keys() & SERVER_TABLES:
        check = f"from pathlib import Path; from crocevia.config import load; load(Path({str(tmp_path)!r}))"
        (tmp_path / "crocevia.toml").write_text(block.text, encoding="utf-8")
        subprocess.run([sys.executable, "-c", check], env=clean_env(), check=True, timeout=30)
        return
    file = tmp_path / "declared.toml"
    file.write_text(block.text, encoding="utf-8")
    crocevia("apply", str(file), home=tmp_path)


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_a_json_block_is_json(block: Block) -> None:
    msgspec.json.decode(block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_links_only_to_what_exists(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_block_names_a_language_that_the_suite_knows() -> None:
    unknown = [str(block) for block in blocks(*{"yaml", "sh", "shell", "py", "js"})]
    assert not unknown, f"not run by the suite: {unknown}"
