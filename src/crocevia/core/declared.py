"""Read a table that a person wrote into a struct, telling every problem at once and never a rejected value.

Used for declarations (`crocevia apply`) and for settings. A problem names its place (`models[2].prices.input`)
so that a misspelt limit is never silently «unlimited».
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from crocevia.core.errors import GatewayError, Reason, Sentence, say

S = TypeVar("S", bound=msgspec.Struct)

# The two kinds of files, by the names of their tables: never mixed, each refused by the other's command.
DECLARED_TABLES: Final = ("engines", "models", "projects", "users", "recipes", "agents", "teams")
SERVER_TABLES: Final = ("server", "log", "calls", "turns", "limits", "mcp", "search", "gateway")


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, and where."""

    place: str
    message: Sentence


class FieldError(ValueError):
    """A struct refuses a field by itself (`__post_init__`): `FieldError("prompt", Reason.FIELD_BLANK)`.

    A ValueError, so that msgspec gives it as the cause of its own error, which knows where the struct stands.
    """

    def __init__(self, field: str, reason: Reason) -> None:
        super().__init__(f"{field}: {reason.value}")
        self.field = field
        self.reason = reason


class Refused(GatewayError):
    """Nothing was taken, for all of these reasons."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(Reason.DECLARATION_REFUSED, count=len(self.problems))


def read(kind: type[S], table: Any, place: str, problems: list[Problem], *, strict: bool = True) -> S | None:
    """The struct that `table` spells, or None after appending to `problems` what is wrong with it.

    strict False: text may stand for numbers and truth values (the environment has only text).
    """
    if not isinstance(table, Mapping):
        problems.append(Problem(place, say(Reason.FIELD_TYPE, expected="table")))
        return None
    before = len(problems)
    values = read_fields(kind, table, place, problems, strict=strict)
    check_required(kind, values, place, problems)
    return kind(**values) if len(problems) == before else None


def read_fields(
    kind: type[msgspec.Struct], table: Mapping[str, Any], place: str, problems: list[Problem], *, strict: bool = True
) -> dict[str, Any]:
    """The values of the struct's fields that `table` gives, after appending to `problems` what is wrong with them."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    problems.extend(Problem(join(place, str(name)), unknown(str(name), fields)) for name in table if name not in fields)
    return {
        field.name: read_value(field.type, table[name], join(place, name), problems, strict=strict)
        for name, field in fields.items()
        if name in table
    }


def check_required(kind: type[msgspec.Struct], values: Mapping[str, Any], place: str, problems: list[Problem]) -> None:
    """Append the fields without which there is no such struct."""
    problems.extend(
        Problem(join(place, field.encode_name), say(Reason.FIELD_MISSING))
        for field in msgspec.structs.fields(kind)
        if field.required and field.name not in values
    )


def read_value(expected: Any, value: Any, place: str, problems: list[Problem], *, strict: bool = True) -> Any:
    """`value` as `expected`, or None after appending what is wrong."""
    nested = struct_of(expected)
    if nested is not None:
        return read(nested, value, place, problems, strict=strict)
    try:
        return msgspec.convert(value, expected, strict=strict)
    except (msgspec.ValidationError, RecursionError):
        problems.append(Problem(place, _mismatch(expected)))
        return None


def struct_of(expected: Any) -> type[msgspec.Struct] | None:
    """The struct of `Struct` or `Struct | None`, else None."""
    for option in _options(expected):
        if isinstance(option, type) and issubclass(option, msgspec.Struct):
            return option
    return None


def join(place: str, name: str) -> str:
    """`join("models[0]", "name")` is `models[0].name`."""
    return f"{place}.{name}" if place else name


def unknown(name: str, known: Iterable[str]) -> Sentence:
    """«There is no such setting», with the nearest one that there is."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return say(Reason.FIELD_UNKNOWN_NEAR, near=near[0]) if near else say(Reason.FIELD_UNKNOWN)


_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def _mismatch(expected: Any) -> Sentence:
    kinds = []
    for option in _options(expected):
        if get_origin(option) is Literal:
            return say(Reason.FIELD_CHOICE, choices=", ".join(map(str, get_args(option))))
        kinds.append(_PLAIN.get(option) or ("list" if get_origin(option) in (list, tuple) else "table"))
    return say(Reason.FIELD_TYPE, expected=" or ".join(dict.fromkeys(kinds)))


def _options(expected: Any) -> tuple[Any, ...]:
    if get_origin(expected) in (Union, UnionType):
        return tuple(option for option in get_args(expected) if option is not NoneType)
    return (expected,)
