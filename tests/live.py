"""A real `crocevia serve` on a home of its own, as a user runs it: the process, the port, the secrets it printed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The embedded engine's place is taken by the scripted one: the same objects, no weights needed.
SCRIPTED = """
[[engines]]
name = "embedded"
kind = "scripted"
"""


@dataclass(frozen=True)
class LiveServer:
    """`secrets` is what `init --json` printed."""

    url: str
    home: Path
    secrets: dict[str, Any]
    process: subprocess.Popen[bytes]

    @property
    def env(self) -> dict[str, str]:
        """The environment of a program that talks to this server."""
        return clean_env() | {
            "CROCEVIA_URL": self.url,
            "CROCEVIA_HOME": str(self.home),
            "CROCEVIA_PROJECT": str(self.secrets["project"]),
            "CROCEVIA_PROJECT_KEY": str(self.secrets["project_key"]),
            "CROCEVIA_API_KEY": str(self.secrets["api_key"]),
            "CROCEVIA_WORKSPACE": str(self.secrets["workspace_id"]),
            "CROCEVIA_TEAM": str(self.secrets["team_id"]),
            "CROCEVIA_OPERATOR_TOKEN": str(self.secrets["operator_token"]),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        }


def clean_env() -> dict[str, str]:
    """The environment without any setting of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("CROCEVIA_", "OPENCLAW_"))}


def crocevia(*args: str, home: Path) -> str:
    """Run one command line to its end and give back what it printed; fails with its output otherwise."""
    done = subprocess.run(
        [sys.executable, "-m", "crocevia.cli", *args, "--home", str(home)],
        capture_output=True,
        text=True,
        timeout=60,
        env=clean_env(),
        check=False,
    )
    assert done.returncode == 0, f"crocevia {' '.join(args)}: {done.stdout}{done.stderr}"
    return done.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def live_server(home: Path, *, declaration: str = SCRIPTED, settings: str = "") -> Iterator[LiveServer]:
    """Initialise `home`, apply `declaration`, serve until the block ends. Bounded at every step."""
    secrets = json.loads(crocevia("init", "--json", home=home))
    if settings:
        (home / "crocevia.toml").write_text(settings, encoding="utf-8")
    file = home / "declared-by-test.toml"
    file.write_text(declaration, encoding="utf-8")
    crocevia("apply", str(file), home=home)
    port = free_port()
    log = (home / "serve.log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "crocevia.cli", "serve", "--home", str(home), "--port", str(port)],
        stdout=log,
        stderr=subprocess.STDOUT,
        env=clean_env(),
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(url, process, home)
        yield LiveServer(url, home, secrets, process)
    finally:
        process.send_signal(signal.SIGINT)  # unlike SIGTERM, it waits for no proxy
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=5)
        log.close()


def wait_until_up(url: str, process: subprocess.Popen[bytes], home: Path) -> None:
    """Poll `/up` until it answers; fails with the server's log if the process ends or 20 seconds pass."""
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/up", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)  # a bounded poll on another process, which has no event to wait for
    raise AssertionError(f"the server did not come up:\n{(home / 'serve.log').read_text(errors='replace')}")
