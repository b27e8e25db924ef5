"""Writes `conformance/contract/events.json`: every event type and payload, as the other SDKs generate theirs from.

    python extract_events.py CONFORMANCE_FOLDER

The Python SDK's own classes are the source; its suite holds them against the published schema.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from envai_client import events, payloads

FORMATS = {
    payloads.TurnId: "turn_id",
    payloads.AgentId: "agent_id",
    payloads.CallId: "call_id",
    payloads.DateTime: "date_time",
    payloads.Title: "title",
}
PATTERNS = {r"^[A-Z]{3}\Z": "currency", r"^(0|[1-9][0-9]*)(\.[0-9]+)?\Z": "decimal", r"^[a-f0-9]{64}\Z": "sha256"}
PLAIN = {str: "str", int: "int", float: "float", bool: "bool", object: "object"}
NOTICE = "Made from the Python SDK's classes by sdk/python/scripts/extract_events.py."


def describe(hint: Any) -> dict[str, Any]:
    """A type as the contract's inventory spells it, with its bounds."""
    if hint in FORMATS:
        return {"type": "str", "format": FORMATS[hint]}
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return describe(args[0]) | bounds(args[1])
    if origin in (Union, UnionType):
        kinds = [arg for arg in args if arg not in (NoneType, msgspec.UnsetType)]
        (inner,) = [describe(arg) for arg in kinds]
        return {**inner, "type": inner["type"] + " | None"} if NoneType in args else inner
    if origin is Literal:
        return {"type": "str", "enum": list(args)}
    if origin is list:
        return {"type": f"list[{describe(args[0])['type']}]"}
    if origin is dict:
        return {"type": "dict[str, object]"}
    return {"type": PLAIN.get(hint) or hint.__name__}


def bounds(meta: msgspec.Meta) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(meta, name) for name in ("ge", "gt", "le", "max_length")}
    if meta.pattern is not None:
        found["format"] = PATTERNS[meta.pattern]
    return {name: value for name, value in found.items() if value is not None}


def payload(kind: type[msgspec.Struct]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    fields = {
        field.name: {**describe(hints[field.name]), "required": field.required}
        for field in msgspec.structs.fields(kind)
    }
    return {"open": not kind.__struct_config__.forbid_unknown_fields, "fields": fields}


def inventory() -> dict[str, Any]:
    kinds = {
        kind.__name__: kind
        for kind in vars(payloads).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == payloads.__name__
    }
    rows = []
    for name, (event, data) in events.KINDS.items():
        of = {events.TurnEventBase: "turn", events.AgentEventBase: "agent", events.EventBase: "nobody"}[event.__base__]
        row = {"type": name, "class": event.__name__, "of": of, "payload": data.__name__}
        if event in events.TERMINAL:
            row["terminal"] = True
        if name in payloads.ONLY_IN_3:
            row["only_in_3"] = sorted(payloads.ONLY_IN_3[name])
        rows.append(row)
    bases = {"Payload", "Open", "Terminal"}
    shapes = {name: payload(kind) for name, kind in kinds.items() if name not in bases}
    return {"notice": NOTICE, "events": rows, "payloads": shapes | {"AgentRef": payload(events.AgentRef)}}


if __name__ == "__main__":
    target = Path(sys.argv[1]) / "contract/events.json"
    target.write_text(json.dumps(inventory(), indent=1) + "\n", encoding="utf-8")
