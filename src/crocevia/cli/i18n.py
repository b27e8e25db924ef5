"""The command line's own lines, one file per language in `cli/locale/`; what errors say is in `core/locale/`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from crocevia.core.errors import Sentence
from crocevia.core.texts import Language, render


class Line(msgspec.Struct, frozen=True):
    """A key of `cli/locale/*.toml`, and what stands in its placeholders."""

    key: str
    details: dict[str, str | int | float | Sentence] = msgspec.field(default_factory=dict)


def line(key: str, /, **details: str | int | float) -> Line:
    """Shorthand for a `Line`: `line("doctor_store", version=SCHEMA)`."""
    return Line(key, dict(details))


@cache
def lines(language: Language) -> dict[str, str]:
    """Every line of a language by key."""
    source = files("crocevia.cli").joinpath("locale", f"{language}.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))


def text(message: Line | Sentence, language: Language) -> str:
    """What is printed."""
    if isinstance(message, Sentence):
        return render(message, language)
    return lines(language)[message.key].format_map(message.details)


def hint(message: Line | Sentence) -> Line | None:
    """What to do about it, if there is something to say: the line `hint_<key>`, with the same details."""
    key = f"hint_{message.key if isinstance(message, Line) else message.reason}"
    return Line(key, message.details) if key in lines("en") else None
