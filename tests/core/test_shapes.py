"""Whatever the decoder says of a wrong shape is said in both languages, with the place and without the value."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from crocevia.core import json
from crocevia.core.errors import GatewayError
from crocevia.core.texts import render


class Colour(Enum):
    RED = "red"


class Cat(msgspec.Struct, tag="cat"):
    lives: int = 9


class Dog(msgspec.Struct, tag="dog"):
    name: str


class Everything(msgspec.Struct, forbid_unknown_fields=True):
    count: int = 0
    price: float = 0
    text: str = ""
    yes: bool = False
    some: str | None = None
    either: str | list[int] | None = None
    table: dict[str, int] = {}
    colour: Colour = Colour.RED
    mode: Literal["a", "b"] = "a"
    pet: Cat | Dog | None = None
    pets: list[Cat | Dog] = []
    when: Annotated[datetime, Meta(tz=True)] | None = None
    least: Annotated[int, Meta(ge=3)] = 3
    most: Annotated[int, Meta(le=3)] = 3
    above: Annotated[float, Meta(gt=0.5)] = 1
    long: Annotated[str, Meta(min_length=2)] = "xx"
    short: Annotated[str, Meta(max_length=2)] = ""
    many: Annotated[list[int], Meta(min_length=1)] = msgspec.field(default_factory=lambda: [1])
    few: Annotated[list[int], Meta(max_length=1)] = []
    full: Annotated[dict[str, int], Meta(max_length=1)] = {}
    shaped: Annotated[str, Meta(pattern="^a+$")] = "a"
    pair: tuple[int, int] = (1, 2)


CASES: dict[str, tuple[Any, str, str]] = {
    "count": ({"count": "sk-secret"}, "count", "must be a whole number, not text"),
    "whole": ({"count": 1.5}, "count", "must be a whole number, not a number"),
    "price": ({"price": "sk-secret"}, "price", "must be a number, not text"),
    "text": ({"text": ["sk-secret"]}, "text", "must be text, not a list"),
    "yes": ({"yes": "sk-secret"}, "yes", "must be true or false, not text"),
    "or null": ({"some": 5}, "some", "must be text or null, not a whole number"),
    "union": ({"either": {}}, "either", "must be text or a list or null, not an object"),
    "inside a list": ({"either": [1, "sk-secret"]}, "either[1]", "must be a whole number, not text"),
    "inside a table": ({"table": {"sk-secret": "x"}}, "table", "must be a whole number, not text"),
    "choice": ({"colour": "sk-secret"}, "colour", "is not one of the values that can be chosen"),
    "literal": ({"mode": "sk-secret"}, "mode", "is not one of the values that can be chosen"),
    "tag": ({"pet": {"type": "sk-secret"}}, "pet.type", "is not one of the values that can be chosen"),
    "no tag": ({"pet": {}}, "pet.type", "is missing"),
    "missing": ({"pets": [{"type": "cat"}, {"type": "dog"}]}, "pets[1].name", "is missing"),
    "unknown": ({"other": "sk-secret"}, "other", "there is no such field"),
    "moment": ({"when": "sk-secret"}, "when", "must be a moment with a time zone"),
    "no zone": ({"when": "2027-01-31T12:00:00"}, "when", "must be a moment with a time zone"),
    "least": ({"least": 2}, "least", "must be at least 3"),
    "most": ({"most": 4}, "most", "must be at most 3"),
    "above": ({"above": 0.25}, "above", "must be above 0.5"),
    "long": ({"long": ""}, "long", "must have at least 2 characters"),
    "short": ({"short": "sk-secret"}, "short", "must have at most 2 characters"),
    "many": ({"many": []}, "many", "must have at least 1 entries"),
    "few": ({"few": [1, 2]}, "few", "must have at most 1 entries"),
    "full": ({"full": {"a": 1, "b": 2}}, "full", "must have at most 1 fields"),
    "shaped": ({"shaped": "sk-secret"}, "shaped", "is not spelled as it must be"),
    "pair": ({"pair": [1]}, "pair", "does not have the right number of entries"),
    "huge": (b'{"price": 1e400}', "price", "is too large a number"),
}


def refusal(body: Any, kind: Any = Everything) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        json.decode(msgspec.json.encode(body) if not isinstance(body, bytes) else body, kind)
    return caught.value


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_shape_is_told_by_place_and_kind_in_both_languages(case: str) -> None:
    body, path, reason = CASES[case]
    error = refusal(body)
    assert error.param == path
    english, italian = render(error.message, "en"), render(error.message, "it")
    assert english.startswith(f"'{path}' ") and reason in english and english.endswith(".")
    for text in (english, italian):
        assert "secret" not in text and "{" not in text and "`" not in text
    assert not {"must", "Expected", "missing", "not"} & set(italian.split())


def test_a_body_that_is_no_object_is_told_so() -> None:
    for body in (b"[]", b"5", b'"x"', b"null"):
        error = refusal(body)
        assert error.param is None
        assert render(error.message, "it").startswith("Il corpo deve essere un oggetto, non ")


VALUES: list[Any] = [None, True, 3, -1, 1.5, "", "x", "xxx", [], [1, "x"], [{}], {}, {"a": "x"}, {"type": "dog"}]


@pytest.mark.parametrize("field", [*Everything.__struct_fields__, "other"])
def test_nothing_the_decoder_says_reaches_a_reader(field: str) -> None:
    for value in VALUES:
        try:
            json.decode(msgspec.json.encode({field: value}), Everything)
        except GatewayError as error:
            text = render(error.message, "it")
            assert not any(word in text for word in ("Expected", "Object ", "Invalid", "got `", "length", "{")), text
