"""Token counts under all the names that compatible servers give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crocevia.core.usage import Usage

# Dotted names are inside a nested object. The first one that holds a number counts.
_WHOLE_INPUT = ("prompt_tokens", "promptTokens")
_INPUT = ("input_tokens", "inputTokens", "input", "prompt_n")
_OUTPUT = ("completion_tokens", "completionTokens", "output_tokens", "outputTokens", "output", "predicted_n")
# Parts of the input in these places are inside the figure above them.
_READ_INSIDE = ("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "cached_tokens")
_WRITE_INSIDE = ("prompt_tokens_details.cache_write_tokens", "input_tokens_details.cache_write_tokens")
# These come beside an input that leaves them out, unless that input is called prompt tokens.
_READ_BESIDE = (
    "cache_read_input_tokens",
    "cacheRead",
    "cacheReadTokens",
    "cache_read",
    "cachedInputTokens",
    "prompt_cache_hit_tokens",
    "cache_n",
)
_WRITE_BESIDE = ("cache_creation_input_tokens", "cacheWrite", "cacheWriteTokens", "cache_write", "cache_write_tokens")
_REASONING = (
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
    "reasoning_tokens",
    "reasoningTokens",
    "reasoning",
)


def read(usage: Mapping[str, Any]) -> Usage:
    """The figures of a usage object (or of llama.cpp's timings) in our meaning: the cache is part of the input."""
    whole, part = _first(usage, _WHOLE_INPUT), _first(usage, _INPUT)
    read_inside, write_inside = _first(usage, _READ_INSIDE), _first(usage, _WRITE_INSIDE)
    read_beside, write_beside = _first(usage, _READ_BESIDE), _first(usage, _WRITE_BESIDE)
    if whole is None and part is not None:
        whole = part + (read_beside or 0) + (write_beside or 0)
    return Usage(
        input_tokens=whole,
        output_tokens=_first(usage, _OUTPUT),
        cache_read_tokens=read_inside if read_inside is not None else read_beside,
        cache_write_tokens=write_inside if write_inside is not None else write_beside,
        reasoning_tokens=_first(usage, _REASONING),
    )


def _first(usage: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        holder, _, inner = name.partition(".")
        value = usage.get(holder)
        if inner:
            value = value.get(inner) if isinstance(value, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return int(value)
    return None
