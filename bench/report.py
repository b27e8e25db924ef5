"""Measurements as a Markdown page."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import quantiles

from .load import Measured
from .servers import Target

_LIBRARIES = ("aiohttp", "msgspec", "starlette", "uvicorn", "uvloop", "httptools")


@dataclass
class Result:
    """One server: by concurrency, calls that do not stream and calls that do. `others`: cores busy with other work."""

    target: Target
    whole: dict[int, Measured] = field(default_factory=dict)
    streamed: dict[int, Measured] = field(default_factory=dict)
    idle_mib: float = 0.0
    others: list[float] = field(default_factory=list)
    bound: set[tuple[bool, int]] = field(default_factory=set)


def per_unit(measured: Measured, streamed: bool) -> float | None:
    """Microseconds of CPU per request, or per token of a stream."""
    units = measured.tally.tokens if streamed else measured.tally.done
    return 1e6 * measured.cpu / units if units else None


def percentile(values: Sequence[float], which: int) -> float | None:
    """In milliseconds."""
    if len(values) < 2:
        return 1000 * values[0] if values else None
    return 1000 * quantiles(values, n=100, method="inclusive")[which - 1]


def page(results: list[Result], *, floor: str, settings: str) -> str:
    """`floor`: the name of the server that the others are compared with."""
    lowest = next((result for result in results if result.target.name == floor), None)
    direct = next(result for result in results if result.target.name == "direct")
    servers = [result for result in results if result is not direct]
    parts = [machine(settings), _whole(servers, lowest), _streamed(servers, lowest), _alone(servers, direct)]
    return "\n".join([*parts, *_notes(results)])


def machine(settings: str) -> str:
    cpu = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    memory = next((int(line.split()[1]) / 2**20 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    libraries = ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    return (
        f"# Benchmark, {datetime.now().astimezone():%Y-%m-%d %H:%M %Z}\n\n"
        f"{cpu}, {os.cpu_count()} CPUs, {memory:.0f} GiB; {platform.system()} {platform.release()}; "
        f"Python {platform.python_version()}; {libraries}.\n{settings}\n"
    )


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "-"


def _whole(servers: list[Result], lowest: Result | None) -> str:
    counts = sorted(servers[0].whole)
    top = counts[-1]
    rows = [
        [
            _title(result),
            *[_cell(per_unit(result.whole[count], False), 0) for count in counts],
            _ratio(result.whole.get(top), lowest.whole.get(top) if lowest else None, False),
            " / ".join(_rate(result, count, streamed=False) for count in counts),
            *[_spread(result.whole[count].tally.latencies) for count in (counts[0], top)],
        ]
        for result in servers
    ]
    head = ["not streamed", *[f"us CPU/request c={count}" for count in counts], f"× nginx c={top}"]
    head += [f"requests/s c={'/'.join(map(str, counts))}", f"ms p50/p99 c={counts[0]}", f"ms p50/p99 c={top}"]
    return table(head, rows)


def _streamed(servers: list[Result], lowest: Result | None) -> str:
    counts = [count for count in sorted(servers[0].streamed) if count > 1]
    top = counts[-1]
    rows = [
        [
            _title(result),
            *[_cell(per_unit(result.streamed[count], True), 1) for count in counts],
            _ratio(result.streamed.get(top), lowest.streamed.get(top) if lowest else None, True),
            " / ".join(_rate(result, count, streamed=True) for count in counts),
            *[_spread(result.streamed[count].tally.first_tokens) for count in counts],
        ]
        for result in servers
    ]
    head = ["streamed", *[f"us CPU/token c={count}" for count in counts], f"× nginx c={top}"]
    head += [f"tokens/s c={'/'.join(map(str, counts))}", *[f"first token ms p50/p99 c={count}" for count in counts]]
    return table(head, rows)


def _alone(servers: list[Result], direct: Result) -> str:
    def added(result: Result, streamed: bool, which: int) -> str:
        def of(each: Result) -> float | None:
            tally = (each.streamed if streamed else each.whole)[1].tally
            return percentile(tally.first_tokens if streamed else tally.latencies, which)

        mine, zero = of(result), of(direct)
        return "-" if mine is None or zero is None else f"{mine - zero:.2f}"

    rows = [
        [
            _title(result),
            f"{added(result, False, 50)} / {added(result, False, 99)}",
            added(result, True, 50),
            f"{result.idle_mib:.0f}",
            _cell(result.target.cold_start, 2),
        ]
        for result in servers
    ]
    head = ["one at a time", "ms added p50/p99", "first token ms added p50", "idle PSS MiB", "s to the first 200"]
    return table(head, rows)


def _notes(results: list[Result]) -> list[str]:
    lines = ["CPU is the whole process tree of a server, user and system. Added: over asking the mock directly."]
    if any(result.bound for result in results):
        lines.append("\\* mock and generator used up their CPU: the rate is theirs; the CPU per unit is still right.")
    busy = [each for result in results for each in result.others]
    if busy:
        lines.append(f"Other work on the machine meanwhile: {min(busy):.1f} to {max(busy):.1f} cores.")
    for result in results:
        for kind, rows in (("not streamed", result.whole), ("streamed", result.streamed)):
            lines += [
                f"{result.target.name}, {kind}, c={count}: {row.tally.failed} failed, last: {row.tally.failure}"
                for count, row in rows.items()
                if row.tally.failed
            ]
    return [f"\n{line}" for line in lines]


def _title(result: Result) -> str:
    return f"{result.target.name} {result.target.version}".strip()


def _cell(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _ratio(mine: Measured | None, lowest: Measured | None, streamed: bool) -> str:
    if mine is None or lowest is None:
        return "-"
    above, below = per_unit(mine, streamed), per_unit(lowest, streamed)
    return "-" if above is None or not below else f"{above / below:.1f}"


def _rate(result: Result, count: int, *, streamed: bool) -> str:
    measured = (result.streamed if streamed else result.whole)[count]
    units = measured.tally.tokens if streamed else measured.tally.done
    return f"{units / measured.seconds:.0f}" + ("*" if (streamed, count) in result.bound else "")


def _spread(values: Sequence[float]) -> str:
    return f"{_cell(percentile(values, 50), 2)} / {_cell(percentile(values, 99), 2)}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
