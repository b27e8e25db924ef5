"""The fixtures and our reading of them, held against the published JSON Schema.

The schema is not part of this project. The tests run where it is found: in the folder named by ENVAI_CONTRACTS, or in
an installed `envai-teams-sdk`.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import os
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from scenario import load

from envai_client.errors import ProtocolError
from envai_client.events import parse_event
from envai_client.requests import OPERATIONS

CASES = load("atp/events.json")


def find_contracts() -> Path | None:
    if folder := os.environ.get("ENVAI_CONTRACTS"):
        return Path(folder)
    spec = importlib.util.find_spec("envai")
    found = Path(spec.origin).parent / "_contracts" if spec is not None and spec.origin else None
    return found if found is not None and found.is_dir() else None


CONTRACTS = find_contracts()
pytestmark = pytest.mark.skipif(CONTRACTS is None, reason="needs the published contract files")


FORMATS = FormatChecker()  # jsonschema checks times only if another package is there


@FORMATS.checks("date-time")
def is_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        return datetime.fromisoformat(value.upper().replace("Z", "+00:00")).tzinfo is not None and "T" in value.upper()
    except ValueError:
        return False


@cache
def validator(version: int) -> Draft202012Validator:
    assert CONTRACTS is not None
    document = json.loads((CONTRACTS / ("events.json" if version == 3 else "events-v2.json")).read_text())
    # Costs became nullable in version 2 by the specification's explicit migration; the version 2 file predates it.
    text = json.dumps(document)
    if version == 2:
        text = text.replace('{"type": "number", "minimum": 0}', '{"type": ["number", "null"], "minimum": 0}')
        document = json.loads(text)
        nullable(document)
    document["$ref"] = "#/$defs/Event"
    return Draft202012Validator(document, format_checker=FORMATS)


def nullable(node: Any) -> None:
    if isinstance(node, dict):
        for name, value in node.items():
            if name in ("cost_usd", "cost", "chat_cost") and isinstance(value, dict) and value.get("type") == "number":
                value["type"] = ["number", "null"]
            nullable(value)
    elif isinstance(node, list):
        for value in node:
            nullable(value)


def schema_says(event: Any) -> bool:
    version = event.get("v") if isinstance(event, dict) else None
    return type(version) is int and version in (2, 3) and validator(version).is_valid(event)


def we_say(event: Any) -> bool:
    try:
        parse_event(json.dumps(event).encode())
    except ProtocolError:
        return False
    return True


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_verdict_of_a_fixture_is_the_schemas(case: dict[str, Any]) -> None:
    assert schema_says(case["event"]) is case["valid"]


VALID = [case["event"] for case in CASES if case["valid"]]
ODD = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", [], {}, [1], {"a": 1}, 10**20, "cmpl_01j5abcdefghjkmnpqrstvwxy0"]
)


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    event = copy.deepcopy(draw(st.sampled_from(VALID)))
    node: Any = event
    while isinstance(node, dict) and node:
        key = draw(st.sampled_from(sorted(node)))
        if isinstance(node[key], dict) and draw(st.booleans()):
            node = node[key]
            continue
        action = draw(st.sampled_from(["drop", "replace", "add"]))
        if action == "drop":
            del node[key]
        elif action == "replace":
            node[key] = draw(ODD)
        else:
            node["added"] = draw(ODD)
        break
    return event


@settings(max_examples=250, deadline=None)
@given(mutants())
def test_a_mutant_is_judged_as_the_schema_judges_it(event: Any) -> None:
    assert we_say(event) is schema_says(event)


def test_the_packaged_inventory_is_the_published_one() -> None:
    assert CONTRACTS is not None
    published = json.loads((CONTRACTS / "operations.json").read_text())
    extensions = {operation["id"] for operation in load("contract/extensions.json")["operations"]}
    assert {name: (o.method, o.path) for name, o in OPERATIONS.items() if name not in extensions} == {
        name: (o["method"], o["path"]) for name, o in published.items()
    }
