"""Token counts with one meaning for every engine.

`input_tokens` is the whole prompt; the cache fields are parts of it. Unknown is None, never zero.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

LARGEST_TOKENS: Final = 1_000_000_000
"""Of one call: hundreds of the largest contexts there are. What claims more is a mistake, not a measurement."""
LARGEST_USD: Final = 1_000_000
"""Of one call."""

TOKENS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")

N = TypeVar("N", int, float)


def add_usd(amount: float, other: float) -> float:
    """The sum of two sums of money as they are written down: exact to the nano-dollar, without binary dust."""
    return round(amount + other, 9)


def plausible(value: N | None, most: float) -> N | None:
    """The value, or None (unknown) where no call can have consumed or cost that much: below 0, above `most`, NaN."""
    return value if value is not None and 0 <= value <= most else None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What one call consumed, in tokens."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    estimated: bool = False
    """Some figure is ours, not the provider's."""

    def updated(self, later: Usage) -> Usage:
        """Later figures are cumulative: they replace earlier ones field by field, and are never added.

        A figure beyond reason makes the field unknown, whatever was known before.
        """
        return Usage(
            input_tokens=_later(self.input_tokens, later.input_tokens),
            output_tokens=_later(self.output_tokens, later.output_tokens),
            cache_read_tokens=_later(self.cache_read_tokens, later.cache_read_tokens),
            cache_write_tokens=_later(self.cache_write_tokens, later.cache_write_tokens),
            reasoning_tokens=_later(self.reasoning_tokens, later.reasoning_tokens),
            estimated=later.estimated,
        )

    def __add__(self, other: Usage) -> Usage:
        """The sum of two calls; unknown plus known is the known part, marked estimated."""
        return Usage(
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            cache_read_tokens=_sum(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens=_sum(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens=_sum(self.reasoning_tokens, other.reasoning_tokens),
            estimated=self.estimated
            or other.estimated
            or (self.input_tokens is None) != (other.input_tokens is None)
            or (self.output_tokens is None) != (other.output_tokens is None),
        )


def _later(earlier: int | None, later: int | None) -> int | None:
    return earlier if later is None else plausible(later, LARGEST_TOKENS)


def _sum(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right
