"""Sentences in the reader's language, from one file per language in `core/locale/`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

from crocevia.core.errors import Sentence

Language = Literal["it", "en"]


@cache
def sentences(language: Language) -> dict[str, str]:
    """Every sentence of a language by key."""
    source = files("crocevia.core").joinpath("locale", f"{language}.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))


def render(message: Sentence, language: Language) -> str:
    """The sentence with its arguments filled in. An argument that was not given stays visible as `{name}`."""
    args = {
        name: render(value, language) if isinstance(value, Sentence) else value
        for name, value in message.details.items()
    }
    return sentences(language)[message.reason].format_map(_Lenient(args))


class _Lenient(dict[str, "str | int | float"]):
    def __missing__(self, key: str) -> str:
        return "{" + key + "}"
