"""Requirements as data: what a specification asks, and which tests prove it. Enforced both ways.

Each protocol's folder holds `requirements.py` (its list) and tests marked `@requirement("P-…")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


@dataclass(frozen=True)
class Requirement:
    """id: ours, stable. section: where the specification says it. divergence: what we do instead, and why."""

    id: str
    text: str
    section: str
    divergence: str | None = None


def requirement(*ids: str) -> Callable[[T], T]:
    """Mark a test with the requirements that it proves."""

    def mark(test: T) -> T:
        test.requirements = ids  # type: ignore[attr-defined]  # the mark itself
        return test

    return mark


def contract_tests(folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every test of a protocol's folder with the ids on it."""
    for file in sorted(folder.glob("test_*.py")):
        module = import_module(f"tests.contract.{folder.name}.{file.stem}")
        for name, value in vars(module).items():
            if name.startswith("test_") and callable(value) and value.__module__ == module.__name__:
                yield f"{file.stem}::{name}", getattr(value, "requirements", ())


def check_both_ways(requirements: tuple[Requirement, ...], folder: Path) -> None:
    """Assert that every requirement has a test, and every contract test a requirement that exists."""
    known = [row.id for row in requirements]
    assert len(known) == len(set(known)), "an id is used twice"
    tests = dict(contract_tests(folder))
    assert [name for name, ids in tests.items() if not ids] == []
    cited = {single for ids in tests.values() for single in ids}
    assert sorted(cited - set(known)) == []
    assert sorted(set(known) - cited) == []
