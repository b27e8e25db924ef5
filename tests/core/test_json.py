import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core import json
from crocevia.core.errors import Code, GatewayError
from crocevia.core.texts import render


class Body(msgspec.Struct):
    max_tokens: int = 0
    kind: str = ""


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    name: str


BAD = {
    "malformed": b"{",
    "empty": b"",
    "nan": b'{"max_tokens": NaN}',
    "infinity": b"[Infinity]",
    "trailing": b"{} x",
    "invalid utf-8": b'{"kind": "\xff"}',
    "utf-8 cut": "è".encode()[:1],
    "lone surrogate": b'{"kind": "\\ud800"}',
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "wrong type": b'{"max_tokens": "many"}',
    "not an object": b"[]",
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_bad_json_is_one_clear_refusal(body: bytes) -> None:
    with pytest.raises(GatewayError) as caught:
        json.decode(body, Body)
    assert caught.value.code is Code.INVALID_REQUEST
    assert render(caught.value.message, "it")


def test_the_refusal_names_the_path_and_never_the_value() -> None:
    with pytest.raises(GatewayError) as caught:
        json.decode(b'{"max_tokens": "sk-secret"}', Body)
    assert caught.value.param == "max_tokens"
    assert "secret" not in render(caught.value.message, "en") + repr(caught.value)


def test_an_unknown_field_is_refused_without_quoting_its_value() -> None:
    with pytest.raises(GatewayError) as caught:
        json.decode(b'{"name": "a", "extra": "sk-secret"}', Strict)
    assert "secret" not in render(caught.value.message, "en")


@given(st.binary(max_size=200))
def test_any_bytes_either_decode_or_are_refused(data: bytes) -> None:
    try:
        json.decode(data)
    except GatewayError as error:
        assert error.code is Code.INVALID_REQUEST


def test_duplicate_keys_the_last_one_wins() -> None:
    assert json.decode(b'{"kind": "a", "kind": "b"}', Body).kind == "b"
