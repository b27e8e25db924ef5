"""The published contract, as the official client carries it, and what an answer must be by it."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

# What the contract lists nowhere and HTTP needs all the same; each in the contract's own error form.
EVERYWHERE = {"400", "401", "404", "405", "413", "422", "426", "429", "500", "503"}

# What it lists for one reason only, or forgot: divergences T-SSE-2 and T-STE-1.
BESIDE = {("streamChatEvents", 400), ("streamChatEventsLegacy", 400), ("steerChatTurn", 409)}


@cache
def document(version: int) -> dict[str, Any]:
    name = "openapi.json" if version == 3 else "openapi-v2.json"
    loaded: dict[str, Any] = json.loads((files("envai") / "_contracts" / name).read_text(encoding="utf-8"))
    return loaded


@cache
def _operations(version: int) -> list[tuple[str, re.Pattern[str], str, dict[str, Any]]]:
    found = []
    for path, item in document(version)["paths"].items():
        pattern = re.compile("[^/]+".join(re.escape(part) for part in re.split(r"\{[^}]+\}", path)))
        for method, operation in item.items():
            if method in ("get", "post", "put", "delete"):
                found.append((method.upper(), pattern, path, operation))
    return sorted(found, key=lambda row: row[2].count("{"))


def operation_of(method: str, path: str, version: int = 3) -> tuple[str, dict[str, Any]] | None:
    """The template and the operation of an address below the prefix."""
    for known, pattern, template, operation in _operations(version):
        if known == method and pattern.fullmatch(path):
            return template, operation
    return None


def operations(version: int = 3) -> list[tuple[str, str, str]]:
    """Every (id, method, path) of the contract."""
    return [(operation["operationId"], method, path) for method, _, path, operation in _operations(version)]


@cache
def _validator(version: int, schema: str) -> Draft202012Validator:
    whole = {"components": document(version)["components"]} | json.loads(schema)
    return Draft202012Validator(whole)


def check(schema: dict[str, Any], value: Any, version: int = 3) -> None:
    """Assert that a value is what a schema of the document says."""
    problems = [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
        for error in _validator(version, json.dumps(schema)).iter_errors(value)
    ]
    assert not problems, problems


def check_answer(method: str, path: str, status: int, body: Any, version: int = 3) -> None:
    """Assert that an answer is one that the contract allows for this address."""
    found = operation_of(method, path, version)
    listed = found[1]["responses"].get(str(status)) if found is not None else None
    if found is not None and (found[1]["operationId"], status) in BESIDE:
        check({"$ref": "#/components/schemas/Error"}, body, version)
        return
    if listed is None:
        assert str(status) in EVERYWHERE, f"{method} {path} may not answer {status}"
        check({"$ref": "#/components/schemas/Error"}, body, version)
        return
    if "$ref" in listed:
        listed = document(version)["components"]["responses"][listed["$ref"].rpartition("/")[2]]
    content = listed.get("content", {}).get("application/json")
    if content is None and status >= 400:  # the contract says only that it may be: the form is that of all errors
        check({"$ref": "#/components/schemas/Error"}, body, version)
    elif content is None:
        assert body is None, f"{method} {path} {status} has no body"
    else:
        check(content["schema"], body, version)
