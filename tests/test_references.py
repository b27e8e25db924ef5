"""What docstrings and comments name is there: files, names of modules, identifiers. A rename leaves no ghosts."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "crocevia"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "migrations" not in path.parts)

FILE = re.compile(r"(?<![\w./*-])((?:[\w-]+/)*[\w*-]+\.py)\b")
DOTTED = re.compile(r"`([a-z_][a-z0-9_.]*)\.([A-Z]\w*)`")
IDENTIFIER = re.compile(r"`([A-Za-z_]\w*)`")
FOREIGN = {"Allow", "cat", "is_global", "maxBodyBytes", "zona_notte"}  # of other programs, or an example


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings (of fields, too) and comments, each with its line."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@cache
def words() -> frozenset[str]:
    """Every word of code: names, and words in strings that are no docstrings."""
    found: set[str] = set()
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.toml"), *PACKAGE.rglob("*.js")]:
        source = path.read_text(encoding="utf-8")
        if path.suffix != ".py":
            found.update(re.findall(r"\w+", source))
            continue
        tree = ast.parse(source)
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in docs:
                text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                found.update(re.findall(r"\w+", text))
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NAME:
                found.add(token.string)
    return frozenset(found) | {path.stem for path in MODULES} | {path.name for path in PACKAGE.rglob("*")}


@cache
def public(module: str) -> frozenset[str] | None:
    """Names at the top of every module that may be meant by `module` (`http`, `upstream.http`); None: there is none."""
    tail = tuple(module.split("."))
    found: set[str] = set()
    known = False
    for path in MODULES:
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts[-len(tail) :] == tail:
            known = True
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                found.update(names_of(node))
    return frozenset(found) if known else None


def names_of(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def is_file(name: str, path: Path) -> bool:
    """Beside the module that names it, below it, in the package or in the repository."""
    return any(next(place.glob(name), None) for place in (path.parent, path.parent.parent, PACKAGE, ROOT))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_prose_names_nothing_that_is_gone(path: Path) -> None:
    lost = []
    for line, text in prose(path):
        lost += [f"{line}: {name}" for name in FILE.findall(text) if not is_file(name, path)]
        for module, name in DOTTED.findall(text):
            known = public(module)
            if known is not None and name not in known:
                lost.append(f"{line}: {module}.{name}")
        lost += [f"{line}: {name}" for name in IDENTIFIER.findall(text) if name not in words() | FOREIGN]
    assert not lost
