"""The script in docs/scripted-engine.md does what the page says."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crocevia.core.catalogue import EngineSpec
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import StopReason
from crocevia.core.messages import user
from tests.engines.test_scripted import after, answer, request

PAGE = Path(__file__).parents[2] / "docs" / "scripted-engine.md"


def page_script() -> list[dict[str, Any]]:
    block = PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    spec = msgspec.convert(tomllib.loads(block)["engines"][0], EngineSpec)
    assert spec.script
    return spec.script


def test_the_script_of_the_page_holds_a_tool_loop() -> None:
    first = answer(page_script(), request(user("What is the weather?")))
    assert (first.text, first.stop, first.tool_calls[0].name) == ("Let me look. ", StopReason.TOOL_USE, "get_weather")
    then = answer(page_script(), request(*after("get_weather", "22 degrees", question="What is the weather?")))
    assert (then.text, then.stop) == ("It says: 22 degrees", StopReason.END)


@pytest.mark.parametrize(("said", "code"), [("busy", Code.UPSTREAM_OVERLOADED), ("cut", Code.UPSTREAM_FAILED)])
def test_the_script_of_the_page_fails_on_demand(said: str, code: Code) -> None:
    with pytest.raises(GatewayError) as caught:
        answer(page_script(), request(user(said)))
    assert caught.value.code is code


def test_the_script_of_the_page_ends_with_a_rule_for_everything_else() -> None:
    other = answer(page_script(), request(user("hm")))
    assert (other.text, other.usage.input_tokens) == ("You said «hm». Perché no? 🧭", 1840)
    assert answer(page_script(), request(user("endless"))).stop is StopReason.MAX_TOKENS
