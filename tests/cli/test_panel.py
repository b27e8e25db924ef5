"""`crocevia panel reset`: a new way in for whoever holds the machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crocevia.cli import main
from crocevia.runtime.catalogue import digest
from crocevia.runtime.control.audit import entries
from crocevia.runtime.control.init import init
from crocevia.storage import meta
from crocevia.storage.database import snapshot
from crocevia.storage.home import Home, key_secret


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("home")
    init(Home(path), "http://x")
    return path


@pytest.fixture
def home(tmp_path: Path, initialised: Path) -> Path:
    return Path(shutil.copytree(initialised, tmp_path / "home"))


def reset(home: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["panel", "reset", *args, "--home", str(home)])


def _is_wanted(home: Path, link: str) -> bool:
    with snapshot(Home(home).database) as tx:
        wanted = meta.get(tx, meta.SETUP_TOKEN)
    return wanted == digest(key_secret(Home(home)), link.partition("token=")[2].encode()).hex()


def test_the_newest_link_counts_and_it_is_written_down_without_the_link(home: Path) -> None:
    first = json.loads(reset(home, "--json").stdout)["setup_url"]
    assert first.startswith("http://127.0.0.1:8111/panel/setup?token=") and _is_wanted(home, first)
    second = json.loads(reset(home, "--json").stdout)["setup_url"]
    assert second != first and _is_wanted(home, second) and not _is_wanted(home, first)
    with snapshot(Home(home).database) as tx:
        lines = entries(tx)
    assert [(line.action, line.kind) for line in lines] == [("reset", "password")] * 2
    assert all(second.partition("token=")[2] not in repr(line) for line in lines)


def test_people_read_the_link_and_what_it_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "it_IT.UTF-8")
    done = reset(home)
    link = next(word for word in done.stdout.split() if word.startswith("http"))
    assert done.exit_code == 0 and _is_wanted(home, link) and "una volta" in done.stdout


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = reset(tmp_path / "nowhere")
    assert done.exit_code == 1 and "Traceback" not in done.output
    assert not (tmp_path / "nowhere").exists()
