"""Write docs/settings.md from the settings and the text under each of their fields.

python scripts/make_settings_page.py [--check]
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import msgspec

from crocevia.config import Settings
from crocevia.config.loading import PREFIX

TARGET = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
INTRODUCTION = """# Settings

<!-- Written by scripts/make_settings_page.py from the settings themselves: change those, then run it. -->

A serving process reads `crocevia.toml` in its home; what is declared (engines, models, projects, …) is applied with
`crocevia apply` and is not here. A setting may come from the environment too: `{prefix}` and its path in capitals, with
`__` for each dot (`{prefix}SERVER__PORT`). A flag of `crocevia serve` wins over the environment, the environment over
the file, the file over the default. The panel's page «Settings» shows each value and where it came from.
"""


class Setting(NamedTuple):
    path: str
    kind: str
    default: str
    text: str


def page() -> str:
    """The whole page."""
    tables: dict[str, list[Setting]] = {}
    for setting in _settings(Settings, ""):
        tables.setdefault(setting.path.partition(".")[0], []).append(setting)
    parts = [INTRODUCTION.format(prefix=PREFIX)]
    for table, settings in tables.items():
        parts.append(
            f"## {table}\n\n{_texts(Settings)[table]}\n\n| setting | type | default | meaning |\n|---|---|---|---|"
        )
        parts[-1] += "".join(f"\n| `{path}` | {kind} | {default} | {text} |" for path, kind, default, text in settings)
        parts[-1] += "\n"
    return "\n".join(parts)


def _settings(struct: type[msgspec.Struct], place: str) -> Iterator[Setting]:
    kinds = typing.get_type_hints(struct)
    for field in msgspec.structs.fields(struct):
        if field.name == "origins":  # not a setting: where the others came from
            continue
        path, kind = f"{place}{field.encode_name}", kinds[field.name]
        entry = get_args(kind)[1] if get_origin(kind) is dict else None
        if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
            yield from _settings(kind, f"{path}.")
        elif inspect.isclass(entry) and issubclass(entry, msgspec.Struct):
            yield from _settings(entry, f"{path}.NAME.")
        else:
            yield Setting(path, _kind(kind), _default(field), _texts(struct)[field.name])


@cache
def _texts(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The string under each field. Raises KeyError where it is read for a field that has none."""
    module = ast.parse(Path(inspect.getsourcefile(struct) or "").read_text(encoding="utf-8"))
    body = next(node.body for node in module.body if isinstance(node, ast.ClassDef) and node.name == struct.__name__)
    return {
        field.target.id: " ".join(text.value.value.split()).replace("|", "\\|")
        for field, text in zip(body, body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _kind(kind: Any) -> str:
    args = [arg for arg in get_args(kind) if arg is not type(None) and arg is not ...]
    if get_origin(kind) is Literal:
        return ", ".join(f"`{arg}`" for arg in args)
    if get_origin(kind) in (types.UnionType, typing.Union):
        return " or ".join(map(_kind, args))
    if get_origin(kind) is tuple:
        return "list of texts"
    if get_origin(kind) is dict:
        return "table of texts"
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}[kind]


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value)
    return f"`{msgspec.json.encode(value).decode().strip(chr(34))}`"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(None if TARGET.read_text(encoding="utf-8") == page() else f"{TARGET.name} is old: run {sys.argv[0]}")
    TARGET.write_text(page(), encoding="utf-8")
