"""Figures of measurements: CPU per unit, percentiles, ratios, what is added to asking directly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import quantiles

from .load import Measured
from .servers import Target


@dataclass
class Result:
    """One server: by concurrency, calls that do not stream and calls that do. `others`: cores busy with other work."""

    target: Target
    whole: dict[int, Measured] = field(default_factory=dict)
    streamed: dict[int, Measured] = field(default_factory=dict)
    idle_mib: float | None = None
    others: list[float] = field(default_factory=list)
    bound: set[tuple[bool, int]] = field(default_factory=set)


def per_unit(measured: Measured | None, *, streamed: bool) -> float | None:
    """Microseconds of CPU per request, or per token of a stream."""
    if measured is None:
        return None
    units = measured.tally.tokens if streamed else measured.tally.done
    return 1e6 * measured.cpu / units if units else None


def percentile(values: Sequence[float], which: int) -> float | None:
    """In milliseconds."""
    if len(values) < 2:
        return 1000 * values[0] if values else None
    return 1000 * quantiles(values, n=100, method="inclusive")[which - 1]


def ratio(mine: Measured | None, lowest: Measured | None, *, streamed: bool) -> float | None:
    """How many times the CPU of the other."""
    above, below = per_unit(mine, streamed=streamed), per_unit(lowest, streamed=streamed)
    return None if above is None or not below else above / below


def added(result: Result, direct: Result, *, streamed: bool, which: int) -> float | None:
    """Milliseconds over asking directly, one at a time: to the end, or to the first token of a stream."""

    def of(each: Result) -> float | None:
        measured = (each.streamed if streamed else each.whole).get(1)
        if measured is None:
            return None
        return percentile(measured.tally.first_tokens if streamed else measured.tally.latencies, which)

    mine, zero = of(result), of(direct)
    return None if mine is None or zero is None else mine - zero
