from __future__ import annotations

from typing import Any

import pytest

from crocevia.core.usage import Usage
from crocevia.engines.openai.usage import read


@pytest.mark.parametrize("name", ["input", "inputTokens", "input_tokens", "promptTokens", "prompt_tokens", "prompt_n"])
def test_every_name_of_the_input_is_known(name: str) -> None:
    assert read({name: 7}) == Usage(input_tokens=7)


@pytest.mark.parametrize(
    "name", ["output", "outputTokens", "output_tokens", "completionTokens", "completion_tokens", "predicted_n"]
)
def test_every_name_of_the_output_is_known(name: str) -> None:
    assert read({name: 7}) == Usage(output_tokens=7)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        # The cache inside the input (OpenAI, DeepSeek) and beside it (Anthropic's names, OpenClaw's, llama.cpp's).
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}}, (10, 4, None)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4}, (10, 4, None)),
        ({"prompt_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1}, (10, 4, 1)),
        ({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}}, (10, 4, None)),
        ({"input_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 5}, (12, 4, 5)),
        ({"input": 3, "cacheRead": 4, "cacheWrite": 5}, (12, 4, 5)),
        ({"prompt_n": 3, "cache_n": 4}, (7, 4, None)),
        ({"prompt_tokens": 0, "prompt_tokens_details": {"cached_tokens": 0}}, (0, 0, None)),
    ],
)
def test_the_input_is_the_whole_prompt(usage: dict[str, Any], expected: tuple[int, int, int | None]) -> None:
    got = read(usage)
    assert (got.input_tokens, got.cache_read_tokens, got.cache_write_tokens) == expected


@pytest.mark.parametrize("value", [None, "7", True, -1, [], {}])
def test_what_is_no_count_is_unknown_and_never_zero(value: object) -> None:
    assert read({"prompt_tokens": value, "completion_tokens": value, "prompt_tokens_details": value}) == Usage()


def test_reasoning_is_found_inside_the_details() -> None:
    assert read({"completion_tokens_details": {"reasoning_tokens": 3}}).reasoning_tokens == 3
    assert read({"output_tokens_details": {"reasoning_tokens": 3}}).reasoning_tokens == 3
