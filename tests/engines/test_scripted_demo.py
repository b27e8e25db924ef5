"""Without a script: a tool that is asked for is called with arguments that fit its schema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from crocevia.core import json
from crocevia.core.messages import Tool, user
from crocevia.engines.scripted.demo import asked_for
from crocevia.engines.scripted.samples import sample
from tests.engines.test_scripted import after, answer, request, tool

CLIMATE = {
    "type": "object",
    "properties": {
        "target": {"type": "string", "enum": ["salone", "zona_notte"]},
        "action": {"type": "string", "enum": ["on", "off"]},
        "note": {"type": "string"},
    },
    "required": ["target", "action"],
}
HOUSE = (tool("get_home_status"), tool("set_climate", CLIMATE))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("call set_climate", "set_climate"),
        ("chiama SET_CLIMATE!", "set_climate"),
        ("what is the home status? then set_climate", "set_climate"),
        ("What is the status of my home?", "get_home_status"),
        ("turn the climate off", "set_climate"),
        ("What is the temperature at home?", "get_home_status"),
        ("get status, set climate, home", "get_home_status"),
        ("get it", None),
        ("acclimate", None),
        ("", None),
    ],
)
def test_the_tool_that_is_named_or_meant_is_called(text: str, name: str | None) -> None:
    found = asked_for(text, HOUSE)
    assert (found.name if found else None) == name


@pytest.mark.parametrize("name", ["getWeather", "get-weather", "weather.get", "GET_WEATHER"])
def test_names_are_understood_however_they_are_written(name: str) -> None:
    assert asked_for("how is the weather", (tool(name),)) is not None


def test_arguments_follow_the_text_and_the_schema() -> None:
    called = answer(None, request(user("switch the climate of the zona notte off"), tools=HOUSE)).tool_calls[0]
    assert json.decode(bytes(called.arguments)) == {"target": "zona_notte", "action": "off"}


def test_a_result_is_quoted_instead_of_calling_again() -> None:
    what = request(*after("get_home_status", "21 degrees", question="home status?"), tools=HOUSE)
    assert answer(None, what).text == "get_home_status: 21 degrees"
    assert answer(None, what).tool_calls == ()


def test_without_a_tool_to_call_the_text_is_echoed() -> None:
    assert answer(None, request(user("ciao"))).text == "You said: ciao"
    assert len(answer(None, request(user("x" * 10_000))).text) < 500


@pytest.mark.parametrize("parameters", [b"[]", b"3", b'{"type":"array"}', b"{", b'{"type":"string"}'])
def test_arguments_are_an_object_whatever_the_schema(parameters: bytes) -> None:
    odd = Tool(name="odd", description="", parameters=Raw(parameters))
    assert bytes(answer(None, request(user("call odd"), tools=(odd,))).tool_calls[0].arguments) == b"{}"


bounds = st.integers(-50, 50)
leaf = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({"type": ["null", "integer"]}),
    st.builds(lambda values: {"enum": values}, st.lists(st.integers() | st.text(max_size=5), min_size=1)),
    st.builds(lambda value: {"const": value}, st.integers() | st.text(max_size=5)),
    st.builds(lambda low, more: {"type": "integer", "minimum": low, "maximum": low + abs(more)}, bounds, bounds),
    st.builds(lambda low: {"type": "number", "minimum": low}, bounds),
    st.builds(
        lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more}, *[st.integers(0, 20)] * 2
    ),
)
key = st.text(max_size=5)
schemas = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 2)),
        st.builds(
            lambda inside: {"type": "object", "properties": inside, "required": list(inside)},
            st.dictionaries(key, inner, max_size=3),
        ),
        st.builds(lambda inside: {"anyOf": [inside, {"type": "null"}]}, inner),
    ),
    max_leaves=6,
)


@given(schemas)
def test_a_sample_fits_the_schema_it_was_made_from(schema: dict[str, Any]) -> None:
    jsonschema.validate(sample(schema), schema)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "required", "enum", "items", "$ref", "anyOf", "format", "minItems"])
            | st.sampled_from(["minLength", "maxLength", "minimum", "maximum", "object", "a"]),
            inner | st.sampled_from(["object", "array", "string", "integer", "#/", "#/a", 10**9]),
            max_size=5,
        )
    ),
)


@given(junk)
def test_a_schema_that_is_no_schema_still_gives_json(schema: Any) -> None:
    json.encode(sample(schema, hint="a text"))


def test_a_schema_that_multiplies_ends_soon() -> None:
    names = [f"p{number}" for number in range(30)]
    again = {"type": "array", "minItems": 10**9, "items": {"$ref": "#/$defs/all"}}
    bomb = {"type": "object", "required": names, "properties": {name: again for name in names}}
    bomb["$defs"] = {"all": {key: bomb[key] for key in ("type", "required", "properties")}}
    assert len(json.encode(sample(bomb))) < 1_000_000
