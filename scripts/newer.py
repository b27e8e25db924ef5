"""Which dependencies that pyproject.toml caps have a version above their cap: the sign to try it and lift the cap.

python scripts/newer.py

Asks pip, and so whatever index pip is configured for. Exit status 1: something newer exists; 0: nothing, or nobody to ask.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def capped(project: Path) -> Iterator[Requirement]:
    """Every requirement with an upper bound, each package once."""
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    extras = [line for extra in declared.get("optional-dependencies", {}).values() for line in extra]
    known = {Requirement(line).name: Requirement(line) for line in (*declared["dependencies"], *extras)}
    yield from (one for one in known.values() if any(bound.operator in ("<", "<=") for bound in one.specifier))


def newest(name: str) -> str | None:
    """The newest final version that pip can see; None if it cannot see any."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", name]
    try:
        said = subprocess.run(pip, capture_output=True, text=True, timeout=60, check=True).stdout
    except (subprocess.SubprocessError, OSError):
        return None
    return said.partition("(")[2].partition(")")[0] or None


def main(project: Path = PROJECT) -> int:
    found = 0
    for requirement in capped(project):
        version = newest(requirement.name)
        if version is None:
            print(f"{requirement.name}: pip has no answer")
        elif version not in requirement.specifier:
            found = 1
            print(f"{requirement.name}: {version} exists; pyproject.toml says {requirement.specifier}")
        else:
            print(f"{requirement.name}: {version} is the newest, and allowed")
    return found


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
