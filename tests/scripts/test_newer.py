"""What tells that a capped dependency has moved on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "newer.py"
PROJECT = """
[project]
dependencies = ["free>=1", "held>=0.54,<0.55"]
[project.optional-dependencies]
more = ["held>=0.54,<0.55", "also-held>=2,<3; sys_platform != 'win32'"]
"""


def newer(folder: Path, answers: dict[str, str]) -> tuple[int, list[str]]:
    """The script's exit status and lines, with a pip that answers from a table."""
    (folder / "pip").mkdir()
    (folder / "pip" / "__init__.py").write_text("")
    (folder / "pip" / "__main__.py").write_text(
        f"import sys\nanswer = {answers!r}.get(sys.argv[-1])\n"
        "print(f'{sys.argv[-1]} ({answer})\\nAvailable versions: {answer}, 0.1') if answer else sys.exit(1)\n"
    )
    (folder / "pyproject.toml").write_text(PROJECT)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder / "pyproject.toml")],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("answers", "status", "lines"),
    [
        (
            {"held": "0.54.9", "also-held": "2.7"},
            0,
            ["held: 0.54.9 is the newest, and allowed", "also-held: 2.7 is the newest, and allowed"],
        ),
        (
            {"held": "0.55.0", "also-held": "2.7"},
            1,
            [
                "held: 0.55.0 exists; pyproject.toml says <0.55,>=0.54",
                "also-held: 2.7 is the newest, and allowed",
            ],
        ),
        ({"also-held": "3.0"}, 1, ["held: pip has no answer", "also-held: 3.0 exists; pyproject.toml says <3,>=2"]),
        ({}, 0, ["held: pip has no answer", "also-held: pip has no answer"]),
    ],
)
def test_a_newer_version_than_a_cap_allows_is_told_and_silence_is_no_alarm(
    tmp_path: Path, answers: dict[str, str], status: int, lines: list[str]
) -> None:
    assert newer(tmp_path, answers) == (status, lines)
