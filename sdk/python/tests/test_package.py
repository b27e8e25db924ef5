"""What is published: a source archive and a wheel that hold what they should, and say what they are."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    pytest.importorskip("hatchling", reason="the build backend is not installed here")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_the_wheel_holds_the_package_its_types_and_its_licences(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        meta = Parser().parsestr(archive.read(next(n for n in names if n.endswith("METADATA"))).decode())
    modules = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert modules <= set(names)
    assert {"envai_client/py.typed", "envai_client/operations.json"} <= set(names)
    assert {Path(name).name for name in names if "/licenses/" in name} == {"LICENSE", "LICENSE-envai"}
    assert all(name.startswith(("envai_client/", "envai_client-")) for name in names)
    assert meta["Name"] == "envai-client" and meta["License-Expression"] == "Apache-2.0"
    assert meta["Requires-Python"] == ">=3.11" and meta["Description-Content-Type"] == "text/markdown"
    body = meta.get_payload()
    assert isinstance(body, str) and body.strip() == (ROOT / "README.md").read_text().strip()
    assert "Typing :: Typed" in meta.get_all("Classifier", [])


def test_what_the_package_imports_is_what_it_requires(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        meta = Parser().parsestr(archive.read(next(n for n in archive.namelist() if n.endswith("METADATA"))).decode())
    wanted = {re.split(r"[<>=;\s]", line)[0] for line in meta.get_all("Requires-Dist", []) if "extra ==" not in line}
    used = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                used |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                used.add(node.module.split(".")[0])
    assert wanted == used - set(sys.stdlib_module_names)


def test_the_source_archive_holds_the_tests_and_the_changelog(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {
        "README.md",
        "CHANGELOG.md",
        "pyproject.toml",
        "tests/test_package.py",
        "src/envai_client/py.typed",
    } <= names


def test_the_changelog_shows_old_and_new_for_every_change_of_the_surface() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    changed = text.split("### Changed")[1].split("\n### ")[0]
    assert changed.count("Before:") >= 4
    assert changed.count("now:") == changed.count("Before:")
