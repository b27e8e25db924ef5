"""Measurements as a Markdown page."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .bars import rows
from .figures import Result, added, per_unit, percentile, ratio

_LIBRARIES = ("aiohttp", "msgspec", "starlette", "uvicorn", "uvloop", "httptools")


def page(results: list[Result], *, floor: str, settings: str) -> str:
    """`floor`: the name of the server that the others are compared with. Servers with a `door` are held to the bars."""
    lowest = next((result for result in results if result.target.name == floor), None)
    direct = next(result for result in results if result.target.name == "direct")
    servers = [result for result in results if result is not direct]
    parts = [machine(settings), _whole(servers, lowest), _streamed(servers, lowest), _alone(servers, direct)]
    held = rows({each.target.door: each for each in servers if each.target.door}, lowest, direct)
    if held:
        parts.append(table(["door", "figure", "measured", "bar", "goal", "reached"], held))
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
    lines = [
        [
            _title(result),
            *[_cell(per_unit(result.whole[count], streamed=False), 0) for count in counts],
            _cell(ratio(result.whole.get(top), lowest.whole.get(top) if lowest else None, streamed=False), 1),
            " / ".join(_rate(result, count, streamed=False) for count in counts),
            *[_spread(result.whole[count].tally.latencies) for count in (counts[0], top)],
        ]
        for result in servers
    ]
    head = ["not streamed", *[f"us CPU/request c={count}" for count in counts], f"× nginx c={top}"]
    head += [f"requests/s c={'/'.join(map(str, counts))}", f"ms p50/p99 c={counts[0]}", f"ms p50/p99 c={top}"]
    return table(head, lines)


def _streamed(servers: list[Result], lowest: Result | None) -> str:
    counts = [count for count in sorted(servers[0].streamed) if count > 1]
    top = counts[-1]
    lines = [
        [
            _title(result),
            *[_cell(per_unit(result.streamed[count], streamed=True), 1) for count in counts],
            _cell(ratio(result.streamed.get(top), lowest.streamed.get(top) if lowest else None, streamed=True), 1),
            " / ".join(_rate(result, count, streamed=True) for count in counts),
            *[_spread(result.streamed[count].tally.first_tokens) for count in counts],
        ]
        for result in servers
    ]
    head = ["streamed", *[f"us CPU/token c={count}" for count in counts], f"× nginx c={top}"]
    head += [f"tokens/s c={'/'.join(map(str, counts))}", *[f"first token ms p50/p99 c={count}" for count in counts]]
    return table(head, lines)


def _alone(servers: list[Result], direct: Result) -> str:
    lines = []
    for result in servers:
        half, most = (added(result, direct, streamed=False, which=which) for which in (50, 99))
        lines.append(
            [
                _title(result),
                f"{_cell(half, 2)} / {_cell(most, 2)}",
                _cell(added(result, direct, streamed=True, which=50), 2),
                _cell(result.idle_mib, 0),
                _cell(result.target.cold_start, 2),
            ]
        )
    head = ["one at a time", "ms added p50/p99", "first token ms added p50", "idle PSS MiB", "s to the first 200"]
    return table(head, lines)


def _notes(results: list[Result]) -> list[str]:
    lines = ["CPU is the whole process tree of a server, user and system. Added: over asking the mock directly."]
    if any(result.bound for result in results):
        lines.append("\\* mock and generator used up their CPU: the rate is theirs; the CPU per unit is still right.")
    busy = [each for result in results for each in result.others]
    if busy:
        lines.append(f"Other work on the machine meanwhile: {min(busy):.1f} to {max(busy):.1f} cores.")
    for result in results:
        for kind, measured in (("not streamed", result.whole), ("streamed", result.streamed)):
            lines += [
                f"{result.target.name}, {kind}, c={count}: {row.tally.failed} failed, last: {row.tally.failure}"
                for count, row in measured.items()
                if row.tally.failed
            ]
    return [f"\n{line}" for line in lines]


def _title(result: Result) -> str:
    return f"{result.target.name} {result.target.version}".strip()


def _cell(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _rate(result: Result, count: int, *, streamed: bool) -> str:
    measured = (result.streamed if streamed else result.whole)[count]
    units = measured.tally.tokens if streamed else measured.tally.done
    return f"{units / measured.seconds:.0f}" + ("*" if (streamed, count) in result.bound else "")


def _spread(values: Sequence[float]) -> str:
    return f"{_cell(percentile(values, 50), 2)} / {_cell(percentile(values, 99), 2)}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
