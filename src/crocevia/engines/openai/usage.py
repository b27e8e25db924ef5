"""Token counts under all the names that compatible servers give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crocevia.core.usage import Usage
from crocevia.engines.upstream import counts

_NAMES: dict[str, tuple[str, ...]] = {
    "whole": ("prompt_tokens", "promptTokens"),
    "input": ("input_tokens", "inputTokens", "input", "prompt_n"),
    "output": ("completion_tokens", "completionTokens", "output_tokens", "outputTokens", "output", "predicted_n"),
    # Beside an input that leaves the cache out, unless that input is called prompt tokens.
    "read": (
        "cache_read_input_tokens",
        "cacheRead",
        "cacheReadTokens",
        "cache_read",
        "cachedInputTokens",
        "prompt_cache_hit_tokens",
        "cache_n",
    ),
    "write": ("cache_creation_input_tokens", "cacheWrite", "cacheWriteTokens", "cache_write", "cache_write_tokens"),
    # Inside the input in any case.
    "read_inside": ("cached_tokens",),
    "reasoning": ("reasoning_tokens", "reasoningTokens", "reasoning"),
}
_MEANINGS = {name: meaning for meaning, names in _NAMES.items() for name in names}
# Objects within the usage object; what they hold is part of the figure beside them.
_DETAILS = {
    "prompt_tokens_details": {"cached_tokens": "read_inside", "cache_write_tokens": "write_inside"},
    "input_tokens_details": {"cached_tokens": "read_inside", "cache_write_tokens": "write_inside"},
    "completion_tokens_details": {"reasoning_tokens": "reasoning"},
    "output_tokens_details": {"reasoning_tokens": "reasoning"},
}


def read(usage: Mapping[str, Any]) -> Usage:
    """The figures of a usage object (or of llama.cpp's timings) in our meaning: the cache is part of the input."""
    found: dict[str, int] = {}
    _collect(usage, _MEANINGS, found)
    for holder, meanings in _DETAILS.items():
        details = usage.get(holder)
        if isinstance(details, dict):
            _collect(details, meanings, found)
    get = found.get
    read, written, thought = get("read_inside", get("read")), get("write_inside", get("write")), get("reasoning")
    whole = get("whole")
    if whole is None and "input" in found:
        whole = found["input"] + get("read", 0) + get("write", 0)
    return Usage(
        input_tokens=_with_parts(whole, (read or 0) + (written or 0)),
        output_tokens=_with_parts(get("output"), thought or 0),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=thought,
    )


def _with_parts(whole: int | None, parts: int) -> int | None:
    """A figure that its parts exceed leaves them out, with the servers that count so."""
    return whole + parts if whole is not None and parts > whole else whole


def _collect(values: Mapping[str, Any], meanings: Mapping[str, str], found: dict[str, int]) -> None:
    """Note each figure that means something; where a server says it twice, one of them is often 0."""
    for name, value in values.items():
        meaning = meanings.get(name)
        count = counts.figure(value) if meaning is not None else None
        if meaning is not None and count is not None:
            found[meaning] = max(count, found.get(meaning, 0))
