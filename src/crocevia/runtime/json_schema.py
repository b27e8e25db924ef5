"""Whether a value is a JSON Schema: its dialect's own meta-schema, by `jsonschema_rs`, and what that leaves open.

Of ours are the bounds and the references: they stay in the document and lead to a schema, so nothing here or at a
client ever fetches one. Patterns are taken as texts, unlike in the meta-schema's `format`: whoever uses a schema has
their own kind of regular expression (`\\p{L}`, `(?<name>…)`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from crocevia.core.declared import Problem, join
from crocevia.core.errors import Reason, Sentence, say

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MAX_BYTES: Final = 64 * 1024
MAX_DEPTH: Final = 32  # of schemas in schemas
_SHOWN: Final = 10  # problems that are told at once

_NEWEST: Final = "https://json-schema.org/draft/2020-12/schema"
_DIALECTS: Final = {
    "json-schema.org/draft/2020-12/schema": ("Draft202012Validator", _NEWEST),
    "json-schema.org/draft/2019-09/schema": (
        "Draft201909Validator",
        "https://json-schema.org/draft/2019-09/schema",
    ),
    "json-schema.org/draft-07/schema": ("Draft7Validator", "http://json-schema.org/draft-07/schema"),
    "json-schema.org/draft-06/schema": ("Draft6Validator", "http://json-schema.org/draft-06/schema"),
}

# Where schemas stand in a schema, in any dialect: as the value itself, in a list or (also) in an object of names.
ONE: Final = frozenset(
    {
        *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"),
        *("additionalItems", "unevaluatedItems", "unevaluatedProperties"),
    }
)
SOME: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})

_TYPES: Final = "one of array, boolean, integer, null, number, object, string, or a list of different ones"
_EXPECTED: Final = {
    "Minimum": "a whole number of at least 0",
    "ExclusiveMinimum": "a number above 0",
    "MinItems": "a list that is not empty",
    "UniqueItems": "a list of different texts",
    "AnyOf": _TYPES,
}
_NAMES: Final = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number of at least 0",
    "number": "a number",
    "object": "an object",
    "string": "a text",
}
_PATTERNS: Final = {"$id": "an address without a fragment"}


class _Schema(NamedTuple):
    """A schema with keywords, on the way."""

    value: dict[str, Any]
    path: tuple[str | int, ...]
    depth: int
    base: dict[str, Any]
    """The nearest one around it with an `$id`: references begin there."""


def problems(schema: dict[str, Any], place: str) -> list[Problem]:
    """What keeps this from being a JSON Schema, at most ten; none if it is one. place: of the schema itself."""
    body = msgspec.json.encode(schema)
    if len(body) > MAX_BYTES:
        return [Problem(place, say(Reason.SCHEMA_LARGE, limit=MAX_BYTES // 1024))]
    dialect = schema.get("$schema", _NEWEST)
    known = _DIALECTS.get(dialect.rstrip("#").partition("://")[2]) if isinstance(dialect, str) else None
    if known is None or not dialect.startswith(("http://", "https://")):
        return [Problem(join(place, "$schema"), say(Reason.SCHEMA_DIALECT))]
    validator = _validator(*known)
    try:
        if not validator.is_valid(schema):
            found = {one.place: one for one in [*_unbounded(schema, place), *_misshapen(validator, schema, place)]}
            return list(found.values())[:_SHOWN]
    except (ValueError, RecursionError):  # deeper than the library goes
        return [Problem(place, say(Reason.SCHEMA_DEEP, limit=MAX_DEPTH))]
    # Most schemas neither refer to anything nor have objects enough to be too deep: for them this is five times faster.
    if body.count(b"{") <= MAX_DEPTH and b'ef":' not in body:
        return []
    return _unbounded(schema, place)


@cache
def _validator(kind: str, meta: str) -> Validator:
    import jsonschema_rs  # 10 ms that a server without client tools does not pay

    made: Validator = getattr(jsonschema_rs, kind)({"$ref": meta}, validate_formats=False)
    return made


def _misshapen(validator: Validator, schema: dict[str, Any], place: str) -> list[Problem]:
    """What the meta-schema refuses, each place once: several of its vocabularies say the same."""
    found: dict[str, Problem] = {}
    for error in validator.iter_errors(schema):
        where = _place(place, error.instance_path)
        found.setdefault(where, Problem(where, _sentence(error.kind, error.instance_path)))
        if len(found) == _SHOWN:
            break
    return list(found.values())


def _place(place: str, path: Iterable[str | int]) -> str:
    for step in path:
        place = f"{place}[{step}]" if isinstance(step, int) else join(place, step[:100])
    return place


def _sentence(kind: Any, path: Sequence[str | int]) -> Sentence:
    name = type(kind).__name__
    if name == "Type" and set(kind.types) == {"boolean", "object"}:
        return say(Reason.SCHEMA_NEEDED)
    if name == "Type":
        return say(Reason.SCHEMA_KEYWORD, expected=" or ".join(_NAMES[one] for one in kind.types))
    if name == "Pattern":
        expected = _PATTERNS.get(str(path[-1]) if path else "", "a name that begins with a letter")
        return say(Reason.SCHEMA_KEYWORD, expected=expected)
    return say(Reason.SCHEMA_KEYWORD, expected=_EXPECTED.get(name, _TYPES))


def _unbounded(schema: dict[str, Any], place: str) -> list[Problem]:
    """Schemas that are too deep, and references that leave the document or lead nowhere in it."""
    found: list[Problem] = []
    anchors = frozenset(_anchors(schema))
    todo = [_Schema(schema, (), 1, schema)]
    while todo and len(found) < _SHOWN:
        here = todo.pop()
        if here.depth > MAX_DEPTH:
            found.append(Problem(_place(place, here.path), say(Reason.SCHEMA_DEEP, limit=MAX_DEPTH)))
            continue
        for name in REFERENCES & here.value.keys():
            wrong = _reference(here.value[name], here.base, anchors)
            if wrong is not None:
                found.append(Problem(_place(place, (*here.path, name)), wrong))
        base = here.value if isinstance(here.value.get("$id"), str) else here.base
        below = [_Schema(value, (*here.path, *steps), here.depth + 1, base) for value, *steps in _below(here.value)]
        todo += reversed(below)
    return found[:_SHOWN]


def _below(schema: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The schemas in a schema that have keywords, in their order, each with the steps that lead to it."""
    for name, value in schema.items():
        if name in ONE and isinstance(value, dict):
            yield value, name
        elif name in SOME and isinstance(value, list):
            yield from ((one, name, index) for index, one in enumerate(value) if isinstance(one, dict))
        elif name in NAMED and isinstance(value, dict):
            yield from ((one, name, key) for key, one in value.items() if isinstance(one, dict))


def _reference(reference: Any, base: Any, anchors: frozenset[str]) -> Sentence | None:
    """What is wrong with a reference. Some dialects take `$dynamicRef` for a word like any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return say(Reason.SCHEMA_REFERENCE_REMOTE)
    pointer = unquote(reference[1:])
    if pointer and not pointer.startswith("/"):
        return None if pointer in anchors else say(Reason.SCHEMA_REFERENCE_LOST)
    value = base
    for step in pointer.split("/")[1:]:
        value = _step(value, step.replace("~1", "/").replace("~0", "~"))
        if value is _NOTHING:
            return say(Reason.SCHEMA_REFERENCE_LOST)
    return None if isinstance(value, dict | bool) else say(Reason.SCHEMA_REFERENCE_LOST)


_NOTHING: Final = object()


def _step(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step, _NOTHING)
    if isinstance(value, list) and step.isascii() and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    return _NOTHING


def _anchors(schema: dict[str, Any]) -> Iterator[str]:
    """Every name that a schema of the document gives itself."""
    todo: list[Any] = [schema]
    while todo:
        here = todo.pop()
        if isinstance(here, dict):
            yield from (name for key in ("$anchor", "$dynamicAnchor") if isinstance(name := here.get(key), str))
            todo += here.values()
        elif isinstance(here, list):
            todo += here
