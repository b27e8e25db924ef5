"""The house keeps its shape: short modules, known layers, one file per language."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import files
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 600
MAX_TEMPLATE_COLUMNS = 140
ROOMS = ("src", "sdk/python/src", "bench", "examples")
SOURCES = sorted(path for room in ROOMS for path in ROOT.glob(f"{room}/**/*.py"))
TEMPLATES = sorted((ROOT / "src").glob("**/*.html"))
IMPORTED_AS = {"argon2-cffi": "argon2", "markdown-it-py": "markdown_it", "pillow": "PIL"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_short_enough_to_hold_in_the_head(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{path.relative_to(ROOT)} has {lines} lines: split it by what it is about"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8").lstrip()
    assert not text or text.startswith(('"""', 'r"""')), f"{path.relative_to(ROOT)} opens without a docstring"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_field_is_raw_json_or_none(path: Path) -> None:
    """msgspec decodes nothing but null into such a field. JSON null as a default, or `Raw | UnsetType`, takes both."""
    assert not re.findall(r"^ {4}\w+: (?:msgspec\.)?Raw \| None", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_can_be_read_without_scrolling_sideways(path: Path) -> None:
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    assert not [f"{path.name}:{at}" for at, line in lines if len(line) > MAX_TEMPLATE_COLUMNS]


def test_core_may_import_no_dependency_but_msgspec() -> None:
    """The contract lists modules one by one: a new dependency belongs there too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *extras["local"], *extras["mcp"], *extras["pdf"]]
    names = {re.split(r"[^\w-]", line)[0] for line in wanted} - {"msgspec"}
    contracts = project["tool"]["importlinter"]["contracts"]
    (core,) = (one for one in contracts if one.get("source_modules") == ["crocevia.core"])
    assert core["forbidden_modules"] == sorted(IMPORTED_AS.get(name, name.replace("-", "_")) for name in names)


def tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [line for line in listing.stdout.splitlines() if (ROOT / line).is_file()]


def test_nothing_tracked_records_where_it_was_made() -> None:
    """Registry addresses and machine paths belong to a machine, not to the project."""
    marks = ["/" + "work/", "/" + "root/", "files.python" + "hosted.org", "registry." + "npmjs.org", "index-" + "url"]
    found = [
        f"{name}: {mark}"
        for name in tracked()
        if (text := (ROOT / name).read_bytes()) and b"\0" not in text[:8000]
        for mark in marks
        if mark.encode() in text
    ]
    assert not found


def test_constraints_pin_versions_and_nothing_else() -> None:
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, pinned, version = line.partition("==")
            assert pinned and name and version and "/" not in line and "@" not in line, line


def test_the_notice_names_every_library_of_the_lgpl_that_a_dependency_carries() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "NOTICE" in project["license-files"]
    bundled = [path for path in files("pi_heif") or () if path.name == "LICENSES_bundled.txt"]
    text = bundled[0].read_text(encoding="utf-8")
    names = re.findall(r"^Name: (\S+)\nLicense: LGPL", text, re.MULTILINE)
    assert {"libheif", "libde265"} <= set(names)
    assert [name for name in names if name not in notice] == []
