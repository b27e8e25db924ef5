"""What is a JSON Schema: the same answer as the dialect's own meta-schema, plus bounds and references that stay."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator

from crocevia.runtime.json_schema import MAX_BYTES, MAX_DEPTH, NAMED, ONE, SOME, problems

# The other library that checks schemas, as a witness.
METAS = {
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": Draft201909Validator,
    "http://json-schema.org/draft-07/schema#": Draft7Validator,
    "http://json-schema.org/draft-06/schema#": Draft6Validator,
}
OTHERS = "type multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength maxItems minItems"
OTHERS += " maxContains minContains maxProperties minProperties pattern title description format $comment $id"
OTHERS += " contentEncoding contentMediaType uniqueItems deprecated readOnly writeOnly enum examples $anchor"
OTHERS += " $dynamicAnchor required dependentRequired default const x-mine"
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from([0.5, 2.0, -1.0])
    | st.sampled_from(["", "object", "string", "a b", "x#", "#x", "#"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "type"]), inner, max_size=2),
    max_leaves=6,
)
WORDS = st.sampled_from(sorted({*OTHERS.split(), *ONE, *SOME, *NAMED}))
SCHEMAS = st.recursive(
    st.dictionaries(WORDS, VALUES, max_size=3) | st.booleans() | VALUES,
    lambda inner: (
        st.dictionaries(st.sampled_from(sorted(ONE)), inner, max_size=2)
        | st.dictionaries(st.sampled_from(sorted(SOME)), st.lists(inner, max_size=2), max_size=2)
        | st.dictionaries(st.sampled_from(sorted(NAMED)), st.dictionaries(st.text(max_size=3), inner, max_size=2))
    ),
    max_leaves=8,
).filter(lambda value: isinstance(value, dict))


def _meta(dialect: str) -> Any:
    meta = METAS[dialect].META_SCHEMA
    if METAS[dialect] is Draft7Validator:  # the witness's copy is older than the word that this draft got late
        return {**meta, "properties": {**meta["properties"], "writeOnly": {"type": "boolean", "default": False}}}
    return meta


@given(schema=SCHEMAS, dialect=st.sampled_from(sorted(METAS)))
def test_it_says_what_the_meta_schema_of_its_dialect_says(schema: dict[str, Any], dialect: str) -> None:
    meta = METAS[dialect](_meta(dialect))
    schema = schema | {"$schema": dialect}
    assert (problems(schema, "p") == []) is meta.is_valid(schema), [error.message for error in meta.iter_errors(schema)]


@pytest.mark.parametrize(
    ("schema", "place", "key"),
    [
        ({"properties": {"to": {"type": "text"}}}, "p.properties.to.type", "schema_keyword"),
        ({"properties": {"to": "string"}}, "p.properties.to", "schema_needed"),
        ({"properties": []}, "p.properties", "schema_keyword"),
        ({"allOf": [{}, {"anyOf": []}]}, "p.allOf[1].anyOf", "schema_keyword"),
        ({"required": ["a", "a"]}, "p.required", "schema_keyword"),
        ({"items": [{}]}, "p.items", "schema_needed"),
        ({"type": ["string", "string"]}, "p.type", "schema_keyword"),
        ({"maxLength": -1}, "p.maxLength", "schema_keyword"),
        ({"maxLength": 1.5}, "p.maxLength", "schema_keyword"),
        ({"multipleOf": 0}, "p.multipleOf", "schema_keyword"),
        ({"$anchor": "1x"}, "p.$anchor", "schema_keyword"),
        ({"$id": "a#b"}, "p.$id", "schema_keyword"),
        ({"uniqueItems": 1}, "p.uniqueItems", "schema_keyword"),
        ({"$ref": 3}, "p.$ref", "schema_keyword"),
        ({"$schema": "ftp://json-schema.org/draft-07/schema"}, "p.$schema", "schema_dialect"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema", "$dynamicRef": 3},
            "p.$dynamicRef",
            "schema_reference_remote",
        ),
        ({"properties": {"$ref": {"$ref": "http://x/y"}}}, "p.properties.$ref.$ref", "schema_reference_remote"),
        ({"minimum": "1"}, "p.minimum", "schema_keyword"),
        ({"$schema": "https://example.com/mine"}, "p.$schema", "schema_dialect"),
        ({"$schema": 7}, "p.$schema", "schema_dialect"),
        (
            {"properties": {"a": {"$ref": "https://example.com/s.json"}}},
            "p.properties.a.$ref",
            "schema_reference_remote",
        ),
        ({"$ref": "other.json#/x"}, "p.$ref", "schema_reference_remote"),
        ({"$ref": "file:///etc/passwd"}, "p.$ref", "schema_reference_remote"),
        ({"$ref": "//host/x"}, "p.$ref", "schema_reference_remote"),
        ({"$dynamicRef": "http://10.0.0.1/"}, "p.$dynamicRef", "schema_reference_remote"),
        ({"$ref": "#/$defs/none"}, "p.$ref", "schema_reference_lost"),
        ({"$ref": "#none"}, "p.$ref", "schema_reference_lost"),
        ({"title": "x", "$ref": "#/title"}, "p.$ref", "schema_reference_lost"),
        ({"allOf": [True], "$ref": "#/allOf/1"}, "p.$ref", "schema_reference_lost"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(schema: dict[str, Any], place: str, key: str) -> None:
    (found,) = problems(schema, "p")
    assert (found.place, found.message.reason) == (place, key)


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"a/b": {"type": "string"}}, "$ref": "#/$defs/a~1b"},
        {"$defs": {"x y": True}, "properties": {"a": {"$ref": "#/$defs/x%20y"}}},
        {"properties": {"me": {"$ref": "#"}}},
        {"$defs": {"n": {"$anchor": "node"}}, "items": {"$ref": "#node"}},
        {"properties": {"in": {"$id": "https://x/y", "$defs": {"d": {}}, "items": {"$ref": "#/$defs/d"}}}},
        {"allOf": [{"$ref": "#/allOf/1"}, {}]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}, {}], "dependencies": {"a": ["b"]}},
        {
            "enum": [{"$ref": "http://x/y"}],
            "const": {"$ref": 3},
            "default": {"type": "text"},
            "properties": {"$ref": {}},
        },
        {"$schema": "https://json-schema.org/draft/2019-09/schema#", "items": [{}]},
        {"pattern": r"^\p{L}+(?<year>\d)$", "maxLength": 10**400, "x-order": 1},
    ],
)
def test_what_is_sound_is_taken(schema: dict[str, Any]) -> None:
    assert problems(schema, "p") == []


@pytest.mark.parametrize("pattern", ["(", "[", "*", r"\p{L}", "(?<year>a)", r"(?i)a", "[[:alpha:]]", "a{2,1}", ""])
def test_a_pattern_is_a_text_since_every_reader_has_a_regular_expression_of_their_own(pattern: str) -> None:
    """The meta-schemas say `format: regex`: here that is an annotation, on purpose."""
    for dialect in METAS:
        schema = {"$schema": dialect, "properties": {"a": {"pattern": pattern}}, "patternProperties": {pattern: True}}
        assert problems(schema, "p") == []


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth - 1):
        schema = {"items": schema}
    return schema


def test_depth_and_size_are_bounded_to_the_last_step() -> None:
    assert problems(nested(MAX_DEPTH), "p") == []
    assert [found.message.reason for found in problems(nested(MAX_DEPTH + 1), "p")] == ["schema_deep"]
    room = MAX_BYTES - len(b'{"title":""}')
    assert problems({"title": "x" * room}, "p") == []
    assert [found.message.reason for found in problems({"title": "x" * (room + 1)}, "p")] == ["schema_large"]


def test_few_of_many_problems_are_told_each_once() -> None:
    for many in ({str(n): 1 for n in range(1000)}, {str(n): {"$ref": "x"} for n in range(1000)}):
        found = problems({"properties": many}, "p")
        assert len({problem.place for problem in found}) == len(found) == 10


def test_data_as_deep_as_a_reader_lets_in_is_an_answer_not_a_fault() -> None:
    for opened, closed in (("[", "]"), ('{"not":', "}"), ('{"a":', "}")):
        data = msgspec.json.decode(opened * 400 + "1" + closed * 400)
        assert len(problems({"default": data}, "p")) <= 1
    deep: Any = {}
    for _ in range(900):
        deep = {"not": deep}
    assert [found.message.reason for found in problems(deep, "p")] == ["schema_deep"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"a": {"$anchor": "b"}}, "allOf": [{"$ref": "#b"}] * 3800},
        {"properties": {f"{n}": {"type": "string"} for n in range(2200)}},
        {"allOf": [{"$ref": "#" + "/allOf/0" * 200}] + [{"$ref": "#" + "/a" * 3000}] * 8},
    ],
)
def test_the_worst_that_fits_costs_little(schema: dict[str, Any]) -> None:
    took = []
    for _ in range(5):
        before = time.process_time()
        problems(schema, "p")
        took.append(time.process_time() - before)
    assert min(took) < 0.25
