"""What the command line says: every line that is asked for is there, in both languages, with what it names."""

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import crocevia.cli
from crocevia.cli.i18n import lines

SOURCE = Path(crocevia.cli.__file__).parent
# Where the key stands among the arguments.
KEY_AT = {"told": 0, "line": 0, "ok": 1, "warn": 1, "bad": 1}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def asked() -> Iterator[tuple[str, str, set[str]]]:
    for path in sorted(SOURCE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KEY_AT:
                details = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
                at = KEY_AT[node.func.id]
                key = node.args[at] if len(node.args) > at else None
                if isinstance(key, ast.Constant):
                    yield f"{path.name}:{node.lineno}", str(key.value), details


def test_every_line_that_is_asked_for_is_there_with_what_it_names() -> None:
    found, known = list(asked()), lines("en")
    assert len(found) > 50
    assert [(where, key) for where, key, _ in found if key not in known] == []
    # A hint is filled in with the details of the line that it goes with.
    for where, key, details in found:
        hint = placeholders(known.get(f"hint_{key}", ""))
        assert placeholders(known[key]) <= details, where
        assert details <= placeholders(known[key]) | hint, where


def test_both_languages_have_the_same_lines_and_placeholders() -> None:
    english, italian = lines("en"), lines("it")
    assert {key: placeholders(text) for key, text in english.items()} == {
        key: placeholders(text) for key, text in italian.items()
    }
