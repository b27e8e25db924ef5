"""Arguments made up from a JSON Schema.

The schema is a caller's: whatever it holds, this ends soon and raises nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_VALUES = 500
_DEPTH = 8
_LENGTH = 1000
_SAMPLES: Mapping[str, Any] = {"string": "sample", "integer": 1, "number": 1.5, "boolean": True, "null": None}
_FORMATS: Mapping[str, str] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample(schema: Any, *, hint: str = "") -> Any:
    """A value that fits `schema` in the common cases: const, default, enum, example, else one of its type.

    hint: of an enum, the value whose words are all in this text is preferred. Optional properties are left out.
    """
    return _Sampler(schema, hint).value(schema, 0)


class _Sampler:
    __slots__ = ("_left", "_root", "_said")

    def __init__(self, root: Any, hint: str) -> None:
        self._root = root
        self._said = words(hint)
        self._left = _VALUES  # references can multiply: a few lines of schema may describe billions of values

    def value(self, schema: Any, depth: int) -> Any:
        self._left -= 1
        if not isinstance(schema, dict) or depth > _DEPTH or self._left < 0:
            return None
        given = self._given(schema)
        if given:
            return given[0]
        inner = self._inner(schema)
        return self._of_type(schema, depth) if inner is None else self.value(inner, depth + 1)

    def _given(self, schema: dict[str, Any]) -> list[Any]:
        for key in ("const", "default"):
            if key in schema:
                return [schema[key]]
        options: list[Any] = next((schema[key] for key in ("enum", "examples") if _filled(schema.get(key))), [])
        named = [value for value in options if isinstance(value, str) and words(value) and words(value) <= self._said]
        return named or options

    def _inner(self, schema: dict[str, Any]) -> Any:
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            return self._follow(reference[2:].split("/"))
        if "properties" in schema or "type" in schema:
            return None
        return next((schema[key][0] for key in ("anyOf", "oneOf", "allOf") if _filled(schema.get(key))), None)

    def _follow(self, path: list[str]) -> Any:
        found = self._root
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        return found

    def _of_type(self, schema: dict[str, Any], depth: int) -> Any:
        kind = _kind(schema)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            wanted = _whole(schema.get("minItems"), 0)
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(min(wanted, max(0, self._left)))]
        if kind == "string":
            return _string(schema)
        return _number(schema, _SAMPLES[kind]) if kind in ("integer", "number") else _SAMPLES.get(kind)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties"), schema.get("required")
        known = properties if isinstance(properties, dict) else {}
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        return {name: self.value(known.get(name, {}), depth + 1) for name in names[:_VALUES]}


def words(text: str) -> set[str]:
    """The words of a text or of a name: `zona_notte` is zona, notte."""
    return set(re.findall(r"[^\W_]+", text.casefold()))


def _kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    return kind if isinstance(kind, str) else "null"


def _filled(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _whole(value: Any, otherwise: int) -> int:
    return min(value, _LENGTH) if isinstance(value, int) and value >= 0 else otherwise


def _string(schema: dict[str, Any]) -> str:
    wanted = schema.get("format")
    text = _FORMATS.get(wanted, _SAMPLES["string"]) if isinstance(wanted, str) else str(_SAMPLES["string"])
    return text.ljust(_whole(schema.get("minLength"), 0), "x")[: _whole(schema.get("maxLength"), _LENGTH)]


def _number(schema: dict[str, Any], usual: float) -> float:
    low, high = schema.get("minimum"), schema.get("maximum")
    if isinstance(low, int | float) and usual < low:
        return low
    if isinstance(high, int | float) and usual > high:
        return high
    return usual
