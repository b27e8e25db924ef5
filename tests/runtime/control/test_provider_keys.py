"""The key of an engine is the provider's business: local servers take any word."""

from __future__ import annotations

import pytest

from crocevia.core.errors import Reason
from crocevia.runtime.control.declarations import Refused, parse

ENGINE = '[[engines]]\nname = "local"\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:11434/v1"\napi_key = "{}"\n'


@pytest.mark.parametrize("key", ["ollama", "EMPTY", "none", "x"])
def test_the_usual_keys_of_local_servers_are_taken(key: str) -> None:
    assert parse(ENGINE.format(key).encode()).secrets == {"engines": {"local": key}}


@pytest.mark.parametrize("key", ["", "two words", "chiavé", "x" * 4097])
def test_what_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(ENGINE.format(key).encode())
    (problem,) = refused.value.problems
    assert problem.message.reason is Reason.PROVIDER_KEY_SHAPE
