"""Write src/crocevia/policy/prices.json from the installed genai_prices: what a server needs of it, a tenth its size.

python scripts/make_prices.py [--check]
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from genai_prices import types
from genai_prices.data import providers

TARGET = Path(__file__).resolve().parent.parent / "src" / "crocevia" / "policy" / "prices.json"
# Sellers with an address of their own that speak one of our dialects; resellers without one cannot be recognised.
LEFT_OUT = {"cursor", "github-copilot", "elevenlabs", "voyageai", "openai-decisions"}
FIELDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
CLAUSES = {
    types.ClauseEquals: ("=", "equals"),
    types.ClauseStartsWith: ("^", "starts_with"),
    types.ClauseEndsWith: ("$", "ends_with"),
    types.ClauseContains: ("~", "contains"),
    types.ClauseRegex: ("re", "regex"),
}


def table() -> bytes:
    rows = [made for provider in providers if (made := _provider(provider))]
    encoded = msgspec.json.encode([version("genai-prices"), rows])
    return encoded.replace(b"]],[[", b"]],\n[[") + b"\n"


def _provider(provider: Any) -> list[Any] | None:
    if provider.id in LEFT_OUT or provider.id.startswith("huggingface_"):
        return None
    models = [[_match(model.match), prices] for model in provider.models if (prices := _prices(model.prices))]
    return [provider.id, provider.api_pattern, models, list(provider.fallback_model_providers or ())]


def _match(clause: Any) -> list[Any]:
    if isinstance(clause, types.ClauseOr):
        return ["or", *map(_match, clause.or_)]
    if isinstance(clause, types.ClauseAnd):
        return ["and", *map(_match, clause.and_)]
    kind, field = CLAUSES[type(clause)]
    text = getattr(clause, field)
    return [kind, text if kind == "re" else text.lower()]


def _prices(prices: Any) -> list[Any]:
    """Dated prices, oldest first. Cheaper hours are left out: the dearest hour of a date is what may be due."""
    if not isinstance(prices, list):
        return [("", tiers)] if (tiers := _tiers(prices)) else []
    dated: dict[str, list[Any]] = {}
    for conditional in prices:
        constraint = conditional.constraint
        since = constraint.start_date.isoformat() if isinstance(constraint, types.StartDateConstraint) else ""
        tiers = _tiers(conditional.prices)
        if tiers and (since not in dated or tiers[0][1] > dated[since][0][1]):
            dated[since] = tiers
    return sorted(dated.items())


def _tiers(price: Any) -> list[Any]:
    values = [getattr(price, field) for field in FIELDS]
    if values[0] is None:
        return []
    starts = sorted({tier.start for value in values if isinstance(value, types.TieredPrices) for tier in value.tiers})
    return [(start, [_at(value, start) for value in values]) for start in (0, *starts)]


def _at(value: Any, start: int) -> int | None:
    if isinstance(value, types.TieredPrices):
        held = value.base
        for tier in value.tiers:
            if tier.start <= start:
                held = tier.price
        value = held
    return None if value is None else int(value * 1_000_000)


if __name__ == "__main__":
    made = table()
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.read_bytes() == made else "prices.json is not what scripts/make_prices.py writes")
    TARGET.write_bytes(made)
