"""Shapes that every dialect needs: ids, schemas, arguments and texts that providers accept."""

from __future__ import annotations

import base64
import re
import uuid
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import FilePart, Tool, ToolMessage
from crocevia.engines.upstream import errors as upstream_errors

# Providers refuse empty texts; a tool that said nothing has still answered.
NO_OUTPUT = "(no output)"
NO_TEXT = "(no text)"


def wire_id(call_id: str, accepted: re.Pattern[str]) -> str:
    """A tool call's id as the provider accepts it: itself, or a digest, the same every time and distinct per id."""
    return call_id if accepted.fullmatch(call_id) else "call_" + sha256(call_id.encode()).hexdigest()[:32]


def new_call_id() -> str:
    """For servers that give their calls none."""
    return f"call_{uuid.uuid4().hex[:24]}"


def result_text(message: ToolMessage) -> str:
    """A tool's result where the protocol has no flag for failures."""
    text = message.content if message.content.strip() else NO_OUTPUT
    return f"Error: {text}" if message.is_error else text


def arguments(text: str, tool: str) -> Raw:
    """Complete arguments as they were spelled; blank means none. Raises GatewayError(UPSTREAM_FAILED) otherwise."""
    if not text.strip():
        return Raw(b"{}")
    if not is_object(text):
        upstream_errors.bad_arguments(tool)
    return Raw(text.encode())


def is_object(text: str) -> bool:
    """Whether `text` is one complete JSON object."""
    try:
        msgspec.json.decode(text, type=dict)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return False
    return True


def data_url(part: FilePart) -> str:
    return f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"


def plain_text(part: FilePart) -> str | None:
    """A text document as text; None for any other kind of file."""
    if part.kind != "document" or not part.media_type.startswith("text/"):
        return None
    text = part.data.decode("utf-8", "replace")
    return f"{part.name}\n\n{text}" if part.name else text


def unsupported(part: FilePart) -> GatewayError:
    return GatewayError(Reason.UNSUPPORTED, what=part.media_type)


def parameters(tool: Tool) -> Raw:
    """A tool's schema with what providers insist on filled in where it can mean only one thing.

    Spelled as it came when nothing is missing. Raises GatewayError(INVALID_REQUEST) when the root is no object.
    """
    normal = _normal(bytes(tool.parameters))
    if normal is None:
        raise GatewayError(Reason.TOOL_SCHEMA_NOT_OBJECT, tool=tool.name)
    return Raw(normal)


@lru_cache(maxsize=512)
def _normal(schema: bytes) -> bytes | None:
    """Cached: the same few tools come with every call."""
    try:
        root = msgspec.json.decode(schema, type=dict[str, Any])
        changed = _fill_arrays(root)
        if not _may_be_object(root.get("type", "object")):
            return None
        if root.get("type") != "object" or not isinstance(root.get("properties"), dict):
            root = {**root, "type": "object", "properties": root.get("properties") or {}}
            changed = True
        return msgspec.json.encode(root) if changed else schema
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _may_be_object(kind: Any) -> bool:
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _fill_arrays(node: Any) -> bool:
    """Give arrays that do not say what they hold `items: {}`, everywhere below `node`. True if one was found."""
    changed = False
    if isinstance(node, dict):
        kind = node.get("type")
        is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
        if is_array and "items" not in node and "prefixItems" not in node:
            node["items"] = {}
            changed = True
    for child in _children(node):
        changed = _fill_arrays(child) or changed
    return changed


_NESTED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


def _children(node: Any) -> list[Any]:
    """The schemas directly inside a schema; never its `default`, `const`, `enum` or `examples`, which are data."""
    if not isinstance(node, dict):
        return []
    found = [node[key] for key in _SINGLE if key in node]
    for key in _NESTED:
        if isinstance(node.get(key), dict):
            found += node[key].values()
    for key in _LISTS:
        if isinstance(node.get(key), list):
            found += node[key]
    return found
