"""The panel's own texts, one file per language; a key is `table.name`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final

from crocevia.core.texts import Language

LANGUAGES: Final[tuple[Language, ...]] = ("it", "en")


@cache
def messages(language: Language) -> dict[str, str]:
    """Every text of a language by key."""
    source = files("crocevia.panel").joinpath("locale", f"{language}.toml")
    found: dict[str, str] = {}
    _flatten(tomllib.loads(source.read_text(encoding="utf-8")), "", found)
    return found


def translate(language: Language, key: str, **args: Any) -> str:
    """The text. With `count`, `key.one` or `key.other` is used where the language has them."""
    known = messages(language)
    if args.get("count") == 1 and f"{key}.one" in known:
        key = f"{key}.one"
    elif "count" in args and f"{key}.other" in known:
        key = f"{key}.other"
    return known[key].format_map(args) if args else known[key]


def preferred_language(header: str) -> Language:
    """The most preferred known language of an `Accept-Language` header, else English."""
    ranked = []
    for place, part in enumerate(header.split(",")[:20]):
        name, _, weight = part.strip().partition(";q=")
        try:
            ranked.append((-float(weight or 1), place, name.lower()))
        except ValueError:
            continue
    for rank, _, name in sorted(ranked):
        if rank < 0 and name[:2] in LANGUAGES:
            return "it" if name[:2] == "it" else "en"
    return "en"


def _flatten(tree: dict[str, Any], place: str, found: dict[str, str]) -> None:
    for name, value in tree.items():
        path = f"{place}.{name}" if place else name
        if isinstance(value, dict):
            _flatten(value, path, found)
        else:
            found[path] = value
