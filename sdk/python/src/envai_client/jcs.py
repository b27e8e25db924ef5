"""RFC 8785 canonical JSON: what is signed."""

from __future__ import annotations

from typing import Any

SAFE = 2**53 - 1


def canonical_json(value: Any) -> bytes:
    """The canonical bytes of a JSON value. Raises ValueError on what has none (NaN, infinities, lone surrogates).

    JSON numbers are binary64: an integer beyond 2**53-1 is what a double makes of it.
    """
    import rfc8785  # imported on first use: most programs never verify anything

    try:
        return rfc8785.dumps(as_binary64(value))
    except (rfc8785.CanonicalizationError, RecursionError, OverflowError) as problem:
        raise ValueError(f"no canonical form: {type(problem).__name__}") from None


def as_binary64(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, (str, float)):
        return value
    if isinstance(value, int):
        return value if -SAFE <= value <= SAFE else float(value)
    if isinstance(value, dict):
        return {key: as_binary64(item) for key, item in value.items()}
    return [as_binary64(item) for item in value]
