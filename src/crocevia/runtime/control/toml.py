"""Write TOML the way a person would: one `[[table]]` per entry, inline tables below, long texts on many lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_MANY_LINES: Final = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f]*")  # and nothing that a text editor would change


def write(tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> str:
    """The text of these arrays of tables. Values: text, numbers, truth, lists and tables of them."""
    return "\n".join(
        "".join([f"[[{_key(table)}]]\n", *(f"{_key(name)} = {_value(value)}\n" for name, value in entry.items())])
        for table, entries in tables.items()
        for entry in entries
    )


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any, *, inline: bool = False) -> str:
    if isinstance(value, str):
        many = "\n" in value and not inline and _MANY_LINES.fullmatch(value)
        return _lines(value) if many else _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(name)} = {_value(below, inline=True)}" for name, below in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return f"[{', '.join(_value(below, inline=True) for below in value)}]"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""\n{escaped}"""'
