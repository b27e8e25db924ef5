"""A tool's schema as an engine takes it: an object at the root, in today's dialect, or refused by its place. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Raw

from crocevia.core.declared import Problem
from crocevia.core.errors import GatewayError, Reason, say
from crocevia.core.messages import TOOL_NAME_LENGTH, Tool
from crocevia.core.needs import EngineNeeds
from crocevia.runtime import json_schema

_DRAFT_4: Final = ("json-schema.org/draft-03/", "json-schema.org/draft-04/")
_COMBINED: Final = ("anyOf", "oneOf", "allOf")
_NESTED: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SINGLE: Final = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")


def parameters(tool: Tool, needs: EngineNeeds, place: Callable[[], str]) -> Raw:
    """The tool's schema with what the engine insists on. Spelled as it came when nothing is missing.

    place: of the tool, as its caller spells it. Raises GatewayError(INVALID_REQUEST) that names what is wrong in it.
    """
    spelled = bytes(tool.parameters)
    found = _normal(spelled, needs.whole_schemas, needs.refused_at_root)
    if isinstance(found, bytes):
        return tool.parameters if found == spelled else Raw(found)
    where = f"{place()}.parameters" + (f".{found.place}" if found.place else "")
    name = tool.name[:TOOL_NAME_LENGTH]
    raise GatewayError(Reason.TOOL_SCHEMA_WRONG, param=where, path=where, tool=name, reason=found.message)


@lru_cache(maxsize=512)
def _normal(schema: bytes, whole: bool, refused_at_root: frozenset[str]) -> bytes | Problem:
    """Cached: the same few tools come with every call."""
    try:
        before = msgspec.json.decode(schema, type=dict[str, Any])
        root = _modern(before, whole)
        if not _may_be_object(root.get("type", "object")):
            return _NO_OBJECT
        root["type"] = "object"
        if root.get("properties") in ([], None) and (whole or "properties" in root):
            root["properties"] = {}  # a list is how PHP spells an object without members
        wrong = json_schema.problems(root, "")
        if wrong:
            return wrong[0]
        if not refused_at_root.isdisjoint(root):
            root = _flat(root, refused_at_root)
        return schema if root == before else msgspec.json.encode(root)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return _NO_OBJECT


_NO_OBJECT: Final = Problem("", say(Reason.SCHEMA_NOT_OBJECT))


def _may_be_object(kind: Any) -> bool:
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _modern(node: Any, whole: bool) -> Any:
    """The schema in today's words, everywhere below `node`; never its `default`, `const`, `enum` or `examples`."""
    if not isinstance(node, dict):
        return node
    told = {key: _below(key, value, whole) for key, value in node.items()}
    for key, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(told.get(key), bool):
            exclusive = told.pop(key)
            if exclusive and limit in told:
                told[key] = told.pop(limit)
    if isinstance(told.get("$schema"), str) and any(draft in told["$schema"] for draft in _DRAFT_4):
        del told["$schema"]
    if whole and _is_array(told.get("type")) and "items" not in told and "prefixItems" not in told:
        told["items"] = {}  # providers want to be told that anything may be in it
    return told


def _below(key: str, value: Any, whole: bool) -> Any:
    if key in _NESTED and isinstance(value, dict):
        return {name: _modern(one, whole) for name, one in value.items()}
    if key in _LISTS and isinstance(value, list):
        return [_modern(one, whole) for one in value]
    return _modern(value, whole) if key in _SINGLE else value


def _is_array(kind: Any) -> bool:
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _flat(root: dict[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    """The root without the combinations that engines refuse there: what any branch allows is allowed, and required is
    what every way through the branches requires. Looser than it was: whoever runs the tool checks its arguments.
    """
    properties = dict(root.get("properties", {}))
    required = list(root.get("required", ()))
    for key in refused.intersection(_COMBINED).intersection(root):
        branches = [_resolved(branch, root) for branch in root[key]]
        for branch in branches:
            for name, schema in branch.get("properties", {}).items():
                properties[name] = _either(properties[name], schema) if name in properties else schema
        wanted = [branch.get("required", []) for branch in branches]
        every = wanted[0] if key != "allOf" else [name for names in wanted for name in names]
        required += [name for name in every if key == "allOf" or all(name in names for names in wanted)]
    kept = {key: value for key, value in root.items() if key not in refused}
    kept["properties"] = properties
    if required:
        kept["required"] = list(dict.fromkeys(required))
    return kept


def _resolved(branch: Any, root: dict[str, Any]) -> dict[str, Any]:
    """A branch, or what its reference into the document leads to."""
    if not isinstance(branch, dict):
        return {}
    reference = branch.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return branch
    found: Any = root
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _either(one: Any, other: Any) -> Any:
    if one == other or other is True or other == {}:
        return one
    return other if one is True or one == {} else {"anyOf": [one, other]}
