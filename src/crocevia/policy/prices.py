"""What a call costs: one pure function for estimates, settlements and simulations.

Money is whole nano-dollars (1e-9 USD), prices whole pico-dollars per token (USD per million times 1e6): no sum of
calls drifts. Unknown is None, never zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from crocevia.core.catalogue import Prices
from crocevia.core.usage import Usage

NANO: Final = 1_000_000_000  # in a dollar
_PICO_PER_NANO: Final = 1000


class Rates(msgspec.Struct, frozen=True):
    """Pico-dollars per token."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    above: tuple[tuple[int, Rates], ...] = ()
    """Other rates for the whole call when its prompt is longer than that."""

    @property
    def free(self) -> bool:
        """Whether nothing ever costs anything."""
        return not any((self.input, self.output, self.cache_read, self.cache_write, self.above))

    def at(self, prompt: int) -> Rates:
        """The rates of a call with a prompt of that many tokens."""
        found = self
        for start, rates in self.above:
            if prompt > start:
                found = rates
        return found


FREE: Final = Rates(0, 0, 0, 0)


def cost(usage: Usage, rates: Rates | None) -> int | None:
    """Nano-dollars of one call, rounded up; None if the price or the tokens are unknown, unless there were none.

    The cache fields are parts of `input_tokens`, each with its own price.
    """
    if usage.input_tokens == 0 and usage.output_tokens == 0:
        return 0
    if rates is None:
        return None
    if rates.free:
        return 0
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    fresh = max(0, usage.input_tokens - read - written)
    held = rates.at(usage.input_tokens)
    pico = fresh * held.input + read * held.cache_read + written * held.cache_write
    pico += usage.output_tokens * held.output
    return -(-pico // _PICO_PER_NANO)


def ceiling(prompt: int, output: int, rates: Rates) -> int:
    """Nano-dollars that a call may cost at most: every prompt token at the dearest of its prices."""
    held = rates.at(prompt)
    dearest = max(held.input, held.cache_write, held.cache_read)
    return -(-(prompt * dearest + output * held.output) // _PICO_PER_NANO)


def declared(prices: Prices) -> Rates:
    """The rates that an operator declared."""
    given = prices.input
    read = given * 0.1 if prices.cache_read is None else prices.cache_read
    write = given * 1.25 if prices.cache_write is None else prices.cache_write
    return Rates(pico(given), pico(prices.output), pico(read), pico(write))


def pico(usd_per_million: float | str) -> int:
    """USD per million tokens as pico-dollars per token."""
    return int((Decimal(str(usd_per_million)) * 1_000_000).to_integral_value(ROUND_HALF_EVEN))


def nano(usd: float | str | Decimal) -> int:
    """USD as nano-dollars."""
    return int((Decimal(str(usd)) * NANO).to_integral_value(ROUND_HALF_EVEN))


def usd(amount: int) -> float:
    """Nano-dollars as USD, for people and for columns."""
    return amount / NANO


# The table of public list prices that is in the package (scripts/make_prices.py writes it).

Match: TypeAlias = list[Any]
"""`["=", text]`, `["^", start]`, `["$", end]`, `["~", part]`, `["re", pattern]`, or `["or" | "and", Match…]`."""

Row: TypeAlias = list[int | None]
"""Pico-dollars: input, output, cache read, cache write; the last two None where the list has none."""


class Listed(msgspec.Struct, frozen=True, array_like=True):
    """A model of a provider."""

    match: Match
    prices: list[tuple[str, list[tuple[int, Row]]]]
    """(valid from, «» for always; tiers of (prompt longer than, row)), in order."""


class Provider(msgspec.Struct, frozen=True, array_like=True):
    """`address`: a pattern of its base addresses. `others`: providers whose models it offers at their price."""

    id: str
    address: str
    models: list[Listed]
    others: list[str] = []


class Table(msgspec.Struct, frozen=True, array_like=True):
    """version: of the data that it was made from."""

    version: str
    providers: list[Provider]


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def find_provider(table: Table, address: str) -> str | None:
    """The provider whose address this is."""
    for provider in table.providers:
        if re.match(provider.address, address):
            return provider.id
    return None


def find(table: Table, provider: str, model: str, day: str) -> Rates | None:
    """The list price of a model on a day (`2026-11-30`), or None."""
    known = {row.id: row for row in table.providers}
    for name in (provider, *(known[provider].others if provider in known else ())):
        for listed in known[name].models if name in known else ():
            if matches(listed.match, model.lower()):
                return _rates_on(listed, day)
    return None


def matches(match: Match, model: str) -> bool:
    """Whether a lower-case model id is meant."""
    kind, *rest = match
    if kind == "or":
        return any(matches(single, model) for single in rest)
    if kind == "and":
        return all(matches(single, model) for single in rest)
    return _TESTS[kind](model, rest[0])


_TESTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "=": lambda model, text: model == text,
    "^": lambda model, text: model.startswith(text),
    "$": lambda model, text: model.endswith(text),
    "~": lambda model, text: text in model,
    "re": lambda model, text: _pattern(text).search(model) is not None,
}


def _rates_on(listed: Listed, day: str) -> Rates | None:
    tiers = None
    for since, rows in listed.prices:
        if since <= day:
            tiers = rows
    if not tiers:
        return None
    (_, base), *others = tiers
    return msgspec.structs.replace(_rates(base), above=tuple((start, _rates(row)) for start, row in others))


def _rates(row: Row) -> Rates:
    given, output, read, write = row
    given = given or 0
    return Rates(given, output or 0, given // 10 if read is None else read, given * 5 // 4 if write is None else write)
