"""The Go blocks of docs/sdks.md and the program of the Go SDK's README, on a server, as `make test-sdks` runs them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import FENCE, ROOT, blocks
from tests.live import LiveServer, live_server

pytestmark = pytest.mark.skipif("GOROOT" not in os.environ, reason="make test-sdks runs these, with the Go it installs")
IMPORTS = {"context": "context", "fmt": "fmt", "os": "os", "filepath": "path/filepath", "time": "time"}
PROGRAM = """package main

import (
{imports}
	"log"

	envai "github.com/digitalygo/envai-client"
)

func main() {{
	if err := run(context.Background()); err != nil {{
		log.Fatal(err)
	}}
}}

func run(ctx context.Context) error {{
{body}
	return nil
}}
"""
SNIPPETS = [(str(block), block.text) for block in blocks("go")]
README = next(text for name, text in FENCE.findall((ROOT / "sdk/go/README.md").read_text("utf-8")) if name == "go")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(tmp_path_factory.mktemp("home")) as running:
        yield running


def whole(body: str) -> str:
    used = {"context": "context", **{name: path for name, path in IMPORTS.items() if re.search(rf"\b{name}\.", body)}}
    return PROGRAM.format(imports="\n".join(f'\t"{path}"' for path in sorted(used.values())), body=body)


def run_program(text: str, folder: Path, server: LiveServer) -> str:
    (folder / "main.go").write_text(text.replace("http://127.0.0.1:8111", server.url), encoding="utf-8")
    (folder / "go.mod").write_text(
        "module example\n\ngo 1.24\n\nrequire github.com/digitalygo/envai-client v0.0.0\n\n"
        f"replace github.com/digitalygo/envai-client => {ROOT / 'sdk/go'}\n",
        encoding="utf-8",
    )
    environment = {**os.environ, **server.env, "PATH": os.environ["PATH"]}
    environment |= {"ENVAI_BASE_URL": server.url, "ENVAI_API_KEY": str(server.secrets["api_key"])}
    done = subprocess.run(
        ["go", "run", "."], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.timeout(180)
@pytest.mark.parametrize("where, body", SNIPPETS, ids=[where for where, _ in SNIPPETS])
def test_a_go_block_runs(where: str, body: str, server: LiveServer, tmp_path: Path) -> None:
    assert run_program(whole(body), tmp_path, server).strip()


@pytest.mark.timeout(180)
def test_the_first_program_of_the_readme_runs(server: LiveServer, tmp_path: Path) -> None:
    assert run_program(README, tmp_path, server).strip()
