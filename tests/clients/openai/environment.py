"""An environment of its own for each client, made once and kept in pytest's cache, with its versions pinned."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

PYTHON: dict[str, tuple[str, ...]] = {
    "openai": ("openai==3.57.0", "websockets"),
    "openai-agents": ("openai-agents==0.24.0",),
    "pydantic-ai": ("pydantic-ai-slim[openai]==2.68.0",),
    "langchain": ("langchain-openai==1.7.4",),
    "llm": ("llm==0.36",),
    "litellm": ("litellm==1.110.2",),
    "langgraph": ("langgraph==1.2.24", "langchain-openai==1.7.4"),
    "autogen": ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"),
}
NODE: dict[str, tuple[str, ...]] = {
    "openai-npm": ("openai@6.49.0", "zod@4"),
    "ai-sdk": ("ai@6.0.326", "@ai-sdk/openai@3.0.141", "@ai-sdk/open-responses@1.0.39", "zod@4"),
    "codex": ("@openai/codex@0.171.0",),
    "openai-agents-npm": ("@openai/agents@0.20.0", "zod@4"),
}
HERE = Path(__file__).parent


def folder_of(config: pytest.Config, name: str) -> Path:
    assert config.cache is not None
    return config.cache.mkdir(f"client-{name}")


def python_of(config: pytest.Config, name: str) -> Path:
    """The interpreter of the environment `name`."""
    folder = folder_of(config, name) / f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
        subprocess.run([*install, *PYTHON[name]], check=True, timeout=400)
        (folder / "ready").touch()
    return python


def node_of(config: pytest.Config, name: str) -> Path:
    """A folder with the packages of `name`; skips where there is no npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not here")
    folder = folder_of(config, name)
    if not (folder / "ready").exists():
        (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
        command = [npm, "install", "--no-audit", "--no-fund", "--silent", "--no-package-lock", *NODE[name]]
        subprocess.run(command, cwd=folder, check=True, timeout=500)
        (folder / "ready").touch()
    return folder


def drive(command: list[str], folder: Path | None = None, **environment: str) -> Any:
    """Run a client program; what it printed last, as JSON. Fails with all that it said."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    done = subprocess.run(
        command, cwd=folder, env=kept | environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    return json.loads(done.stdout.strip().splitlines()[-1])
