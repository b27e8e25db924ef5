"""`serve` as a user runs it: a fresh folder, the printed commands, a second shell beside it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPTED = "[[engines]]\nname = 'embedded'\nkind = 'scripted'\n"
CLEAN = {
    name: value for name, value in os.environ.items() if not name.startswith(("CROCEVIA_", "OPENCLAW_", "LC_", "LANG"))
}


def crocevia(*args: str, env: dict[str, str] | None = None, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "crocevia.cli", *args],
        input=given,
        capture_output=True,
        text=True,
        timeout=40,
        env=CLEAN | (env or {}),
        check=False,
    )


@dataclass(frozen=True)
class Running:
    home: Path
    url: str
    printed: str
    key: str


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home, port = tmp_path_factory.mktemp("serve") / "home", free_port()
    command = [sys.executable, "-m", "crocevia.cli", "serve", "--home", str(home), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=CLEAN) as process:
        assert process.stdout is not None
        guard = threading.Timer(40, process.kill)
        guard.start()
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if "serving" in line:
                break
        printed = "".join(lines)
        draining = threading.Thread(target=process.stdout.read, daemon=True)
        draining.start()
        try:
            assert crocevia("apply", "-", "--home", str(home), given=SCRIPTED).returncode == 0
            (key,) = re.findall(r"pk_[\w-]{43}", printed)
            time.sleep(1.0)  # the bound within which a running server follows an apply
            yield Running(home, f"http://127.0.0.1:{port}", printed, key)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=20)
            guard.cancel()
            draining.join(5)


def test_the_printed_commands_pasted_as_they_are_stream_an_answer_and_a_tool_call(running: Running) -> None:
    pasted = running.printed[running.printed.index("export CROCEVIA_PROJECT_KEY=") :]
    commands = re.findall(r"^curl .*?'$", pasted, re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    program = "\n".join([pasted.splitlines()[0], *commands])
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout.count("event: done") == 2, done.stdout + done.stderr
    assert "event: delta" in done.stdout
    assert "event: tool_call" in done.stdout and "get_home_status" in done.stdout


def test_each_secret_is_printed_once(running: Running) -> None:
    secrets = re.findall(r"(?:pk_|op_|envai_sk_|token=)[\w.-]{20,}", running.printed)
    assert len(secrets) == 4
    assert all(running.printed.count(secret) == 1 for secret in secrets)


def test_ask_goes_to_the_running_server(running: Running) -> None:
    args = ("ask", "What is the capital of Japan?", "--home", str(running.home), "--url", running.url)
    done = crocevia(*args, env={"CROCEVIA_PROJECT_KEY": running.key})
    assert (done.returncode, done.stderr) == (0, "")
    assert "capital of Japan" in done.stdout


def test_ask_with_a_wrong_key_says_what_the_server_said(running: Running) -> None:
    done = crocevia("ask", "hi", "--home", str(running.home), "--url", running.url, "--key", "canary-wrong-key")
    assert done.returncode == 1
    assert "The server refused" in done.stderr
    assert "canary" not in done.stdout + done.stderr


def test_doctor_sees_the_stream_from_outside(running: Running) -> None:
    done = crocevia("doctor", "--home", str(running.home), "--url", running.url, "--key", running.key)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"ok +stream +first byte after \d+ ms", done.stdout)
    assert "served now by process" in done.stdout


def test_a_second_server_exits_with_a_message(running: Running) -> None:
    done = crocevia("serve", "--home", str(running.home), "--port", "0")
    assert done.returncode == 1
    assert "is serving this home" in done.stderr
    assert "Traceback" not in done.stderr
