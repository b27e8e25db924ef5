"""The published contract: validate anything against a schema of it by name."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

_FILE = Path(str(distribution("openresponses-py").locate_file("openresponses/openapi/2026-04-24.json")))


@cache
def contract() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    # Two defects of the release, told to its authors by others before us: the answer's `text.format.schema` allows
    # only null, so that no answer could repeat the schema it keeps to.
    formats = found["components"]["schemas"]["JsonSchemaResponseFormat"]["properties"]
    formats["schema"] = {"anyOf": [{"type": "object"}, {"type": "null"}]}
    return found


@cache
def _validator(name: str) -> Draft202012Validator:
    components = contract()["components"]
    assert name in components["schemas"], name
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": components})


def check(name: str, value: Any) -> None:
    """Assert that `value` keeps to the schema called `name`."""
    problems = sorted(_validator(name).iter_errors(value), key=lambda problem: list(map(str, problem.absolute_path)))
    assert not problems, f"{name}: {[(list(p.absolute_path), p.message[:300]) for p in problems[:3]]}"


def check_resource(value: Any) -> None:
    check("ResponseResource", value)
    assert set(value) == set(contract()["components"]["schemas"]["ResponseResource"]["required"])


@cache
def event_schemas() -> dict[str, str]:
    """The schema of every streaming event, by its type."""
    found = {}
    for name, schema in contract()["components"]["schemas"].items():
        kind = schema.get("properties", {}).get("type", {})
        words = kind.get("enum", [])
        if name.endswith("StreamingEvent") and len(words) == 1:
            found[words[0]] = name
    return found


def check_event(event: dict[str, Any]) -> None:
    check(event_schemas()[event["type"]], event)
    if "response" in event:
        check_resource(event["response"])
