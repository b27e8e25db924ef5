"""From a caller's JSON Schema to one that the grammar of constrained decoding takes.

Only the keywords that shape a small model's arguments are kept. Whatever is odd loosens the constraint and never breaks
it: the tool's owner validates the arguments anyway.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

ANY_OBJECT: dict[str, Any] = {"type": "object"}

_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
_MAX_STRING = 2000
_MAX_ITEMS = 50
_MAX_DEPTH = 8
_MAX_CHOICES = 200
_MAX_PROPERTIES = 60
_MAX_NODES = 400


class _Source(msgspec.Struct):
    """The document that references point into, and how many more schemas may be made of it."""

    schema: dict[str, Any]
    left: int


def arguments_schema(parameters: Raw) -> dict[str, Any]:
    """What a tool's arguments must look like; always an object. A tool that declares nothing takes `{}` only."""
    try:
        root = msgspec.json.decode(parameters)
    except (msgspec.DecodeError, RecursionError):
        return ANY_OBJECT
    if not isinstance(root, dict):
        return ANY_OBJECT
    resolved = _resolve(root, _Source(root, 1))
    if not any(key in resolved for key in ("properties", "anyOf", "oneOf", "allOf", "additionalProperties")):
        return {"type": "object", "properties": {}, "additionalProperties": False}
    source = _Source(root, _MAX_NODES)
    made = _object(resolved, source, 0)
    return made if source.left > 0 else ANY_OBJECT


def answer_schema(wanted: Raw) -> dict[str, Any]:
    """What a structured answer must look like; any object where the schema says nothing that can be kept."""
    try:
        root = msgspec.json.decode(wanted)
    except (msgspec.DecodeError, RecursionError):
        return ANY_OBJECT
    source = _Source(root if isinstance(root, dict) else {}, _MAX_NODES)
    made = _value(root, source, 0)
    return made if made and source.left > 0 else ANY_OBJECT


def reply_schema() -> dict[str, Any]:
    """Plain words to the user."""
    return {
        "type": "object",
        "properties": {"reply": {"type": "string", "minLength": 1}},
        "required": ["reply"],
        "additionalProperties": False,
    }


def call_schema(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A call of the tool `name`."""
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _value(schema: Any, root: _Source, depth: int) -> dict[str, Any]:
    """One schema made plain; `{}` (anything) where it cannot be."""
    root.left -= 1
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or root.left <= 0:
        return {}
    schema = _resolve(schema, root)
    for rule in (_choices, _alternatives):
        if (found := rule(schema, root, depth)) is not None:
            return found
    kind = schema.get("type", "object" if isinstance(schema.get("properties"), dict) else None)
    if isinstance(kind, list):
        return _union(schema, kind, root, depth)
    return _typed(schema, kind, root, depth)


def _typed(schema: dict[str, Any], kind: Any, root: _Source, depth: int) -> dict[str, Any]:
    if not isinstance(kind, str) or kind not in _TYPES:
        return {}
    if kind == "object":
        return _object(schema, root, depth)
    if kind == "array":
        return {
            "type": "array",
            "items": _value(schema.get("items", {}), root, depth + 1),
            "minItems": _bounded(schema.get("minItems"), 0),
            "maxItems": _bounded(schema.get("maxItems"), _MAX_ITEMS),
        }
    if kind == "string":
        return {"type": "string", "maxLength": _bounded(schema.get("maxLength"), _MAX_STRING, _MAX_STRING)}
    return {"type": kind, **(_range(schema) if kind == "integer" else {})}


def _object(schema: dict[str, Any], root: _Source, depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(properties) > _MAX_PROPERTIES:
        return ANY_OBJECT
    required = schema.get("required")
    return {
        "type": "object",
        "properties": {name: _value(value, root, depth + 1) for name, value in properties.items()},
        "required": [name for name in properties if isinstance(required, list) and name in required],
        "additionalProperties": False,
    }


def _choices(schema: dict[str, Any], root: _Source, depth: int) -> dict[str, Any] | None:
    if "const" in schema:
        return {"const": schema["const"]}
    choices = schema.get("enum")
    if isinstance(choices, list) and 0 < len(choices) <= _MAX_CHOICES:
        return {"enum": choices}
    return None


def _alternatives(schema: dict[str, Any], root: _Source, depth: int) -> dict[str, Any] | None:
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(options, list) and 0 < len(options) <= _MAX_CHOICES:
        return {"anyOf": [_value(option, root, depth + 1) for option in options]}
    return None


def _union(schema: dict[str, Any], kinds: list[Any], root: _Source, depth: int) -> dict[str, Any]:
    options = [_typed(schema, kind, root, depth + 1) for kind in kinds]
    return {"anyOf": options} if options and all(options) else {}


def _range(schema: dict[str, Any]) -> dict[str, Any]:
    """Integer bounds, when they are whole and leave something to choose."""
    low, high = schema.get("minimum"), schema.get("maximum")
    kept = {key: bound for key, bound in (("minimum", low), ("maximum", high)) if type(bound) is int}
    if len(kept) == 2 and kept["minimum"] > kept["maximum"]:
        return {}
    return kept


def _resolve(schema: dict[str, Any], root: _Source) -> dict[str, Any]:
    """The schema a local `$ref` points to; `{}` when it is remote, broken or circles."""
    for _ in range(_MAX_DEPTH):
        reference = schema.get("$ref")
        if reference is None:
            return schema
        found: Any = root.schema if isinstance(reference, str) and reference.startswith("#") else None
        for step in reference[1:].split("/")[1:] if found is not None else ():
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            return {}
        schema = found
    return {}


def _bounded(value: Any, default: int, ceiling: int = _MAX_ITEMS) -> int:
    return min(value, ceiling) if type(value) is int and value >= 0 else default
