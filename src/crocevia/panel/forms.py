"""Forms for declared values: a table of fields says how a value fills a form and how a form makes an entry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from crocevia.core.declared import Problem
from crocevia.core.texts import Language, render

Kind = Literal["text", "area", "integer", "number", "choice", "check", "names", "rules", "secret"]
_PLACE: Final = re.compile(r'^\w+ (?:"(?:[^"\\]|\\.)*"|#\d+)\.?')
_INTEGER: Final = re.compile(r"[+-]?\d{1,15}")


class Field(msgspec.Struct, frozen=True):
    """How one part of a declared value is edited."""

    path: str
    """Where the value lives in the entry, dotted."""
    kind: Kind = "text"
    options: tuple[str, ...] = ()
    """Of a choice; an empty one stands for «none»."""
    group: str = ""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A field with its current value."""

    path: str
    kind: Kind
    group: str
    value: str = ""
    checked: bool = False
    """Of a check."""
    options: tuple[str, ...] = ()
    fixed: bool = False
    """Whether it cannot change."""
    error: str | None = None
    """Why it was refused."""


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A form's fields in order."""

    inputs: list[Input]
    errors: list[str] = []
    """What is wrong beyond single fields."""
    etag: str | None = None
    """See `writing.etag_of`; None for a new entry."""


def fill(
    fields: Sequence[Field],
    value: Mapping[str, Any],
    *,
    options: Mapping[str, Sequence[str]] | None = None,
    etag: str | None = None,
    fixed: str | None = None,
    problems: Sequence[Problem] = (),
    language: Language = "en",
) -> Form:
    """The form filled with `value` (an entry, or what a person typed). fixed: the field that cannot change."""
    errors: dict[str, str] = {}
    rest: list[str] = []
    paths = [field.path for field in fields]
    for problem in problems:
        place = _PLACE.sub("", problem.place)
        owner = next((path for path in paths if place == path or place.startswith(f"{path}.")), None)
        sentence = render(problem.message, language)
        if owner is None:
            rest.append(f"{place}: {sentence}" if place else sentence)
        else:
            errors.setdefault(owner, sentence)
    inputs = [
        Input(
            path=field.path,
            kind=field.kind,
            group=field.group,
            value=_text(field, _at(value, field.path)),
            checked=_at(value, field.path) is True,
            options=tuple((options or {}).get(field.path, field.options)),
            fixed=field.path == fixed,
            error=errors.get(field.path),
        )
        for field in fields
    ]
    return Form(inputs=inputs, errors=rest, etag=etag)


def entry(fields: Sequence[Field], form: Mapping[str, str], base: Mapping[str, Any]) -> dict[str, Any]:
    """The entry that the form describes; fields that it lacks keep their value of `base`. Empty means «not given»."""
    made = dict(base)
    for field in fields:
        value = _value(field, form.get(field.path, ""))
        _put(made, field.path, _as_before(value, _at(base, field.path)) if field.kind == "names" else value)
    return made


def _as_before(names: list[str], before: Any) -> list[Any]:
    """The names, each as the object that had it where there was one."""
    known = {item["name"]: item for item in before or () if isinstance(item, Mapping)}
    return [known.get(name, name) for name in names]


def _value(field: Field, text: str) -> Any:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if field.kind == "check":
        return text == "on"
    if field.kind == "area":
        return text if text.strip() else None
    text = text.strip()
    if field.kind == "names":
        return [name.strip() for name in re.split(r"[\n,]", text) if name.strip()]
    if field.kind == "rules":
        return _rules(text)
    if not text:
        return None
    return _number(field.kind, text)


def _number(kind: Kind, text: str) -> str | int | float:
    """A number where one is expected; other text stays text, and the validation refuses it."""
    if kind == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number":
        try:
            return float(text.replace(",", "."))
        except ValueError:
            return text
    return text


def _rules(text: str) -> dict[str, str]:
    """`tool = ask`, one a line."""
    pairs = (line.rpartition("=") for line in text.split("\n") if line.strip())
    return {name.strip() or rule.strip(): rule.strip() for name, _, rule in pairs}


def _text(field: Field, value: Any) -> str:
    if value is None or isinstance(value, bool) or field.kind == "secret":
        return ""
    if field.kind == "names" and isinstance(value, list | tuple):
        return "\n".join(item["name"] if isinstance(item, Mapping) else str(item) for item in value)
    if field.kind == "rules" and isinstance(value, Mapping):
        return "\n".join(f"{name} = {rule}" for name, rule in value.items())
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    first, _, rest = path.partition(".")
    if rest:
        below = dict(tree.get(first) or {})
        _put(below, rest, value)
        value = below or None
    if value is None:
        tree.pop(first, None)
    else:
        tree[first] = value
