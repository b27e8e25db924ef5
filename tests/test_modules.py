"""The graph of modules has no circles, a class name means one thing, and a word that was replaced names nothing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parent.parent / "src"
PACKAGE = SRC / "crocevia"


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


@cache
def graph() -> dict[str, set[str]]:
    """What each module uses, also in functions and for types alone."""
    known = modules()
    return {name: {used for used in imports(tree) if used in known and used != name} for name, tree in known.items()}


def test_no_module_needs_itself_on_any_way() -> None:
    try:
        tuple(TopologicalSorter(graph()).static_order())
    except CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None


# A module stands one floor above the highest that it uses in its own room.
@pytest.mark.parametrize("room", ["doors.responses", "doors.pepper", "doors.atp"])
def test_a_door_has_at_most_six_floors(room: str) -> None:
    @cache
    def highest(module: str) -> tuple[str, ...]:
        below = (highest(used) for used in graph()[module] if used.startswith(f"crocevia.{room}"))
        return (module, *max(below, key=len, default=()))

    tower = max((highest(module) for module in graph() if module.startswith(f"crocevia.{room}")), key=len)
    assert len(tower) <= 6, " > ".join(tower)


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
    assert not {name: found for name, found in places.items() if len(found) > 1}


# Words of our own, each with the field's word that took its place. Shapes of a wire spell what their protocol says.
REPLACED = {
    "ModelRunner, ToolRunner": "Mind Hands",
    "turn_setup": "Cast cast_of casting solo",
    "ChatSession": "Room Rooms open_chats",
    "DeltaWriter, RunObserver": "Heard hearing Listener",
    "BackgroundCall": "Aside asides",
    "TurnBudget": "Purse purse",
    "CostCounter": "Tally",
    "InboxItem": "Deposit",
    "detached, attach_driver, attach_task, abandon": "parted driven_by call_off",
    "RunRequest, ImageJob": "Brief Order orders",
    "ToolContext, RequestView": "Scene",
    "Artifact": "Made",
    "prompts": "words_of",
    "image_generation, ImageResult, ImageRequest": "painting Painted ImageWish",
    "WebhookSender, WebhookDelivery": "Courier Letter",
    "Services": "Desk",
    "must_stream": "insists",
    "LimitHeaders, BudgetStatus": "Standing",
    "Attempt, fallback": "retreat",
    "provider blocks": "Opaque OpaqueBlock opaque blockless keeps_pieces",
    "BlockDigests, ConversationDigest": "Fingerprints Trail",
    "Reasoning": "Thinking",
    "UnaryCall": "SideDraft side_calls side_call",
    "Prepared": "Taken",
    "EngineTraits": "KindFacts",
    "PageRequest, PageView, Redirect, Breadcrumb": "Ask Shown Moved Crumb",
    "periodic_cleanup": "keep_house housekeeping",
    "run_until_disconnect, wait_first, race": "while_there first_of until_first",
    "start_deadline, clear_deadline": "_forgive _owed",
    "project_of_user": "tenant_of",
}


def names_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield from name.split(".")


def test_a_word_that_was_replaced_names_nothing() -> None:
    gone = {word for words in REPLACED.values() for word in words.split()}
    found = {
        (module, name)
        for module, tree in modules().items()
        if not is_local(module)
        for name in {*names_in(tree), *module.split(".")} & gone
    }
    assert not found
