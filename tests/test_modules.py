"""The graph of modules has no circles, and a class name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"
PACKAGE = SRC / "crocevia"

# Circles that still stand, each with the room that owns it. This list only shrinks.
CIRCLES = ({"crocevia.app.exchange", "crocevia.app.protocol"},)
# Names that two modules still share, each with the room that should give one up. This list only shrinks.
SHARED = {
    "core/turn": "Agent Answer Call Chat Limits Plan ReasoningDelta TextDelta",
    "doors": "Caller EmbeddingRequest Encoder Rule",
    "engines, app": "Cut Exchange Service",
    "runtime": "Attempt Job",
}


@cache
def modules() -> dict[str, ast.Module]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(SRC).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imports(tree: ast.Module) -> Iterator[str]:
    """Wherever they stand: in functions and under TYPE_CHECKING, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else node.module


def test_no_module_needs_itself_on_any_way() -> None:
    known = modules()
    graph = {name: {used for used in imports(tree) if used in known and used != name} for name, tree in known.items()}
    for circle in CIRCLES:
        assert circle <= graph.keys(), f"{circle} is no circle any more: take it off the list"
        for name in circle:
            assert graph[name] & circle, f"{name} is in no circle any more: take it off the list"
            graph[name] -= circle
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None


def is_local(module: str) -> bool:
    """Shapes of one wire or one page: their names are words of that wire or page."""
    parts = module.split(".")
    wire = any(part.startswith("wire") for part in parts) or module.startswith("crocevia.doors.atp.resources.")
    return wire or module.startswith("crocevia.panel.pages.")


def test_a_class_name_means_one_thing() -> None:
    places = defaultdict(list)
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not is_local(module):
                places[node.name].append(module)
    twice = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    allowed = {name for names in SHARED.values() for name in names.split()}
    assert not {name: found for name, found in twice.items() if name not in allowed}
    assert not allowed - twice.keys(), "these mean one thing by now: take them off the list"
