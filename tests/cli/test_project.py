"""`crocevia project`: spend, corrections, conversations."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from crocevia.cli import main
from crocevia.runtime.control.audit import entries
from crocevia.runtime.control.init import init
from crocevia.storage import conversations
from crocevia.storage.database import immediate, snapshot
from crocevia.storage.home import Home


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("home")
    init(Home(path), "http://x")
    return path


@pytest.fixture
def home(tmp_path: Path, initialised: Path) -> Path:
    return Path(shutil.copytree(initialised, tmp_path / "home"))


def crocevia(*args: str, home: Path) -> str:
    done = CliRunner().invoke(main, [*args, "--home", str(home)])
    assert done.exit_code == 0, done.output
    return done.stdout


def failing(*args: str, home: Path) -> tuple[int, str]:
    done = CliRunner().invoke(main, [*args, "--home", str(home)])
    assert "Traceback" not in done.output
    return done.exit_code, done.stderr


def report(home: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(crocevia("project", "spend", "default", "--json", home=home))
    return found


def test_a_correction_shows_in_the_spend_and_in_the_audit_list(home: Path) -> None:
    crocevia("project", "correct", "default", "1.25", "--reason", "prova", home=home)
    printed = crocevia("project", "correct", "default", "-0.25", "--reason", "troppo", home=home)
    assert "1.000000" in printed
    days = report(home)["days"]
    assert isinstance(days, list) and len(days) == 7
    assert (days[0]["spent"], days[0]["corrected"], days[1]["spent"]) == (1.0, 1.0, 0.0)
    with snapshot(Home(home).database) as tx:
        lines = entries(tx)
    assert [line.changes["reason"][1] for line in lines] == ["troppo", "prova"]
    assert lines[0].changes["spent_usd"] == ("1.250000", "1.000000")
    assert all(line.account.startswith("cli") for line in lines)


@pytest.mark.parametrize(
    "args",
    [
        ("correct", "default", "-1", "--reason", "credito"),
        ("correct", "default", "nan", "--reason", "x"),
        ("correct", "default", "0", "--reason", "x"),
        ("correct", "default", "1e9", "--reason", "x"),
        ("correct", "default", "uno", "--reason", "x"),
        ("correct", "default", "1", "--reason", " "),
        ("correct", "default", "1", "--reason", "a\nb"),
        ("correct", "default", "1"),
        ("forget", "default"),
        ("forget", "default", "c", "--all"),
    ],
)
def test_what_is_wrong_changes_nothing_and_is_told_in_a_line(home: Path, args: tuple[str, ...]) -> None:
    status, told = failing("project", *args, home=home)
    assert status == 2 and told.strip()
    with snapshot(Home(home).database) as tx:
        assert entries(tx) == []


def test_a_project_that_does_not_exist_is_named(home: Path) -> None:
    for args in (("spend", "casa"), ("correct", "casa", "1", "--reason", "x"), ("forget", "casa", "c")):
        status, told = failing("project", *args, home=home)
        assert status == 1 and "casa" in told


def test_conversations_are_deleted_one_or_all(home: Path) -> None:
    with immediate(Home(home).database) as tx:
        for name in ("a", "b", "c"):
            conversations.add_messages(tx, "default", name, [("user", "x"), ("assistant", "y")], time.time())
    assert "2" in crocevia("project", "forget", "default", "a", home=home)
    with snapshot(Home(home).database) as tx:
        assert sorted(row.name for row in conversations.names(tx, "default")) == ["b", "c"]
    assert "4" in crocevia("project", "forget", "default", "--all", home=home)
