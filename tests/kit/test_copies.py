"""scripts/kit-chat.sh keeps copies of the kit fresh, and touches nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crocevia import kit

ROOT = Path(__file__).parents[2]
FILES = ("pepper-chat.js", "pepper-chat.css")

pytestmark = pytest.mark.skipif(
    os.name == "nt" or shutil.which("git") is None or shutil.which("sh") is None, reason="needs sh and git"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small repository with the script and the kit."""
    home = tmp_path / "the checkout"
    for name in ("scripts/kit-chat.sh", "src/crocevia/kit/pepper-chat.css"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, home / name)
    shutil.copytree(ROOT / "src/crocevia/kit/parts", home / "src/crocevia/kit/parts")
    git(home, "init", "-q")
    commit(home)
    return home


def git(where: Path, *arguments: str) -> None:
    identity = {f"GIT_{who}_{what}": "a@b.it" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *arguments], cwd=where, check=True, capture_output=True, env=clean | identity | settings)


def commit(where: Path) -> None:
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", "x", "--allow-empty")


def script(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(checkout / "scripts" / "kit-chat.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=20)


def change_kit(checkout: Path, text: str) -> None:
    parts = checkout / "src/crocevia/kit/parts"
    for part in parts.iterdir():
        part.unlink()
    for place, half in enumerate((text[:3], text[3:])):
        (parts / f"{place}0_half.js").write_text(half, encoding="utf-8")


def test_a_copy_is_the_two_files(checkout: Path, tmp_path: Path) -> None:
    target = tmp_path / "another project"
    target.mkdir()
    assert script(checkout, "copy", str(target)).returncode == 0
    assert sorted(path.name for path in target.iterdir()) == sorted(FILES)
    for served in kit.load().values():
        assert (target / served.name).read_bytes() == served.content
    change_kit(checkout, "// later")
    commit(checkout)
    assert (target / FILES[0]).read_text(encoding="utf-8") != "// later"


def test_a_folder_that_follows_is_fresh_after_the_next_commit_until_it_is_forgotten(
    checkout: Path, tmp_path: Path
) -> None:
    followers = [tmp_path / "one", tmp_path / "two words"]
    for follower in followers:
        follower.mkdir()
        assert script(checkout, "follow", str(follower)).returncode == 0
        assert script(checkout, "follow", str(follower)).returncode == 0
    hook = (checkout / ".git/hooks/post-commit").read_text(encoding="utf-8")
    assert hook.count('kit-chat.sh" refresh') == 1
    change_kit(checkout, "// second")
    commit(checkout)
    assert [(one / FILES[0]).read_text(encoding="utf-8") for one in followers] == ["// second"] * 2
    assert script(checkout, "forget", str(followers[1])).returncode == 0
    change_kit(checkout, "// third")
    commit(checkout)
    assert [(one / FILES[0]).read_text(encoding="utf-8") for one in followers] == ["// third", "// second"]


def test_a_hook_that_is_there_stays(checkout: Path, tmp_path: Path) -> None:
    hook = checkout / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch mine\n", encoding="utf-8")
    hook.chmod(0o755)
    target = tmp_path / "one"
    target.mkdir()
    script(checkout, "follow", str(target))
    change_kit(checkout, "// new")
    commit(checkout)
    assert (checkout / "mine").exists() and (target / FILES[0]).read_text(encoding="utf-8") == "// new"


def test_a_folder_that_is_gone_does_not_stop_the_others_or_the_commit(checkout: Path, tmp_path: Path) -> None:
    for name in ("gone", "there"):
        (tmp_path / name).mkdir()
        script(checkout, "follow", str(tmp_path / name))
    shutil.rmtree(tmp_path / "gone")
    change_kit(checkout, "// new")
    commit(checkout)
    assert (tmp_path / "there" / FILES[0]).read_text(encoding="utf-8") == "// new"


@pytest.mark.parametrize("arguments", [(), ("copy",), ("follow", "/no/such/folder"), ("explode",)])
def test_what_it_cannot_do_it_says(checkout: Path, arguments: tuple[str, ...]) -> None:
    done = script(checkout, *arguments)
    assert done.returncode != 0 and (done.stdout or done.stderr)
