"""Whether a value is a JSON Schema (2020-12, or what older dialects spell the same way): keyword by keyword, in one
pass, without a library's milliseconds per check.

References stay in the document and lead somewhere: nothing here or at a client ever fetches one. Patterns are texts:
whoever uses a schema has their own kind of regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from crocevia.core.declared import Problem, join
from crocevia.core.errors import Message, say

MAX_BYTES: Final = 64 * 1024
MAX_DEPTH: Final = 32  # of schemas in schemas
_SHOWN: Final = 10  # problems that are told at once

_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_ANCHOR: Final = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_DIALECTS: Final = {
    f"{scheme}://json-schema.org/{name}": old
    for scheme in ("http", "https")
    for name, old in (
        ("draft/2020-12/schema", False),
        ("draft/2019-09/schema", True),
        ("draft-07/schema", True),
        ("draft-06/schema", True),
    )
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and (isinstance(value, int) or value.is_integer())


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and _is_names(names) and _TYPES.issuperset(names)


def _is_anchor(value: Any) -> bool:
    return _is_text(value) and _ANCHOR.fullmatch(value) is not None


def _each(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


class _Kind(NamedTuple):
    """What a keyword's value must be, and how that is said."""

    test: Callable[[Any], bool]
    said: str


_NUMBER: Final = _Kind(_is_number, "a number")
_COUNT: Final = _Kind(_is_count, "a whole number of at least 0")
_TEXT: Final = _Kind(_is_text, "a text")
_TRUTH: Final = _Kind(_is_truth, "true or false")
_LIST: Final = _Kind(_is_list, "a list")
_NAMES: Final = _Kind(_is_names, "a list of different texts")
_NAME: Final = _Kind(_is_anchor, "a name that begins with a letter")

KEYWORDS: Final[dict[str, _Kind]] = {
    "type": _Kind(_is_type, f"one of {', '.join(sorted(_TYPES))}, or a list of different ones"),
    "multipleOf": _Kind(lambda value: _is_number(value) and value > 0, "a number above 0"),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"), _NUMBER),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxContains", "minContains"), _COUNT),
    **dict.fromkeys(("maxProperties", "minProperties"), _COUNT),
    **dict.fromkeys(("pattern", "title", "description", "format", "$comment", "$schema"), _TEXT),
    "$id": _Kind(lambda value: _is_text(value) and "#" not in value[:-1], "an address without a fragment"),
    **dict.fromkeys(("contentEncoding", "contentMediaType", "$ref", "$dynamicRef", "$recursiveRef"), _TEXT),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _TRUTH),
    **dict.fromkeys(("enum", "examples"), _LIST),
    **dict.fromkeys(("$anchor", "$dynamicAnchor", "$recursiveAnchor"), _NAME),
    "required": _NAMES,
    "dependentRequired": _Kind(_each(_is_names), "an object of lists of different texts"),
    "$vocabulary": _Kind(_each(_is_truth), "an object of true and false"),
}
ONE: Final = frozenset(
    {
        *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
SOME: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})


class _Schema(NamedTuple):
    """A schema on the way. base: the nearest one around it that has an `$id`; references begin there."""

    value: Any
    place: str
    depth: int
    base: Any


def problems(schema: dict[str, Any], place: str) -> list[Problem]:
    """What keeps this from being a JSON Schema, at most ten; none if it is one. place: of the schema itself."""
    if len(msgspec.json.encode(schema)) > MAX_BYTES:
        return [Problem(place, say("schema_large", limit=MAX_BYTES // 1024))]
    dialect = schema.get("$schema", "https://json-schema.org/draft/2020-12/schema")
    old = _DIALECTS.get(dialect.rstrip("#")) if isinstance(dialect, str) else None
    if old is None:
        return [Problem(join(place, "$schema"), say("schema_dialect"))]
    found: list[Problem] = []
    anchors = frozenset(_anchors(schema))
    todo = [_Schema(schema, place, 1, schema)]
    while todo and len(found) < _SHOWN:
        here = todo.pop()
        if isinstance(here.value, dict):
            found += _own(here, anchors)
            todo += reversed([*_below(here, old, found)])
        elif not isinstance(here.value, bool):
            found.append(Problem(here.place, say("schema_needed")))
    return found[:_SHOWN]


def _own(here: _Schema, anchors: frozenset[str]) -> Iterator[Problem]:
    """What is wrong with a schema's own keywords, not those below it."""
    if here.depth > MAX_DEPTH:
        yield Problem(here.place, say("schema_deep", limit=MAX_DEPTH))
        return
    for name, value in here.value.items():
        kind = KEYWORDS.get(name)
        if kind is None:
            continue
        if not kind.test(value):
            yield Problem(join(here.place, name), say("schema_keyword", expected=kind.said))
        elif name in REFERENCES and (wrong := _reference(value, here.base, anchors)) is not None:
            yield Problem(join(here.place, name), wrong)


def _below(here: _Schema, old: bool, found: list[Problem]) -> Iterator[_Schema]:
    """The schemas in a schema, in their order; containers of the wrong shape go to `found`."""
    if here.depth > MAX_DEPTH:
        return
    base = here.value if isinstance(here.value.get("$id"), str) else here.base
    for name, value in here.value.items():
        place = join(here.place, name)
        if name in ONE and not (name == "items" and old and isinstance(value, list)):
            yield _Schema(value, place, here.depth + 1, base)
        elif name in SOME or name == "items":
            yield from _listed(value, place, here.depth + 1, base, found)
        elif name in NAMED:
            yield from _named(value, place, here.depth + 1, base, found)


def _listed(value: Any, place: str, depth: int, base: Any, found: list[Problem]) -> Iterator[_Schema]:
    if not isinstance(value, list) or not value:
        found.append(Problem(place, say("schema_keyword", expected="a list of schemas that is not empty")))
        return
    for index, one in enumerate(value):
        yield _Schema(one, f"{place}[{index}]", depth, base)


def _named(value: Any, place: str, depth: int, base: Any, found: list[Problem]) -> Iterator[_Schema]:
    if not isinstance(value, dict):
        found.append(Problem(place, say("schema_keyword", expected="an object of schemas")))
        return
    for name, one in value.items():
        if not (place.endswith(".dependencies") and _is_names(one)):  # its older form: names that come along
            yield _Schema(one, join(place, name[:100]), depth, base)


def _reference(reference: str, base: Any, anchors: frozenset[str]) -> Message | None:
    """What is wrong with a reference: it leaves the document, or leads nowhere in it."""
    if not reference.startswith("#"):
        return say("schema_reference_remote")
    pointer = unquote(reference[1:])
    if pointer and not pointer.startswith("/"):
        return None if pointer in anchors else say("schema_reference_lost")
    value = base
    for step in pointer.split("/")[1:]:
        value = _step(value, step.replace("~1", "/").replace("~0", "~"))
        if value is _NOTHING:
            return say("schema_reference_lost")
    return None if isinstance(value, dict | bool) else say("schema_reference_lost")


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
