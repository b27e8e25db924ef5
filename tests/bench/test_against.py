"""`python -m bench --against REV` measures the commit that it names, and tells a change from noise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.against import Compared, checked_out, page


def test_a_change_within_three_per_cent_is_called_the_same() -> None:
    compared = Compared("us/call", first=[100, 100, 100], here=[102, 103, 102], again=[100, 100, 100])
    assert compared.verdict == "the same"


def test_a_change_beyond_three_per_cent_and_beyond_the_spread_is_named() -> None:
    slower = Compared("us/call", first=[100, 101, 99], here=[110, 110, 110], again=[100, 99, 101])
    faster = Compared("us/call", first=[100, 101, 99], here=[80, 80, 80], again=[100, 99, 101])
    assert slower.verdict == "10.0% more" and faster.verdict == "20.0% less"


def test_a_change_that_a_commit_shows_against_itself_is_called_the_same() -> None:
    compared = Compared("us/call", first=[100, 100, 100], here=[107, 107, 107], again=[110, 90, 110])
    assert compared.spread == pytest.approx(0.1)
    assert compared.verdict == "the same"


def test_the_page_has_a_row_per_figure() -> None:
    text = page("abc", [Compared("us/call", [100], [101], [100])], rounds=1, seconds=1)
    assert "| us/call | 100 | 101 | 1.010 | 1.010-1.010 | 0.0% | the same |" in text


def test_the_commit_that_is_named_is_what_runs(tmp_path: Path) -> None:
    source = checked_out("HEAD", tmp_path)
    env = {**os.environ, "PYTHONPATH": str(source)}
    asked = [sys.executable, "-c", "import crocevia; print(crocevia.__file__)"]
    told = subprocess.run(asked, env=env, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(source / "crocevia" / "__init__.py")


def test_a_commit_that_git_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no-such-commit"):
        checked_out("no-such-commit", tmp_path)
