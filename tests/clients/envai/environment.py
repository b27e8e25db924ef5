"""An environment of its own for each version of the official client, made once and kept in pytest's cache."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

VERSIONS = ("1.0.0a5", "1.0.0a2")


def python_with(version: str, cache: Path) -> Path:
    """The interpreter of an environment that holds exactly this version."""
    folder = cache / f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = folder / "ready"
    if not ready.exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
        subprocess.run([*install, f"envai-teams-sdk=={version}"], check=True, timeout=300)
        ready.touch()
    return python


def drive(python: Path, program: Path, *args: str) -> Any:
    """Run a program there; what it printed as JSON. Fails with all that it said."""
    done = subprocess.run([str(python), str(program), *args], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)
