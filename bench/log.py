"""The event log and its streams against their bars: `python -m bench.log`, or only some of it by name.

Every figure is taken `--runs` times; the table has the best and the median, and the bar beside them. Appends run in
this process, everything else against a `crocevia serve` that has one CPU to itself. CPU is of the whole process, all
threads. Other work on the machine moves times, not the CPU per row; the page says how much there was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from .figures import percentile
from .log_store import append, long_chat, many_chats
from .processes import OWN_CPUS, busy_seconds, cpu_seconds, pss_mib
from .report import machine, table
from .turn_server import Server, first_events, prepare, readers, replay, say, script, serving

RAM = Path("/dev/shm")  # a RAM disk is what is measured


@dataclass(frozen=True)
class Kind:
    """What is measured. bar: None if it has none; more: more is better."""

    name: str
    unit: str
    bar: float | None = None
    more: bool = False


@dataclass
class Page:
    """The values of every kind, and what was added by other work."""

    folder: Path
    seconds: float
    subscribers: int
    values: dict[Kind, list[float]] = field(default_factory=dict)

    def note(self, name: str, unit: str, value: float | None, bar: float | None = None, *, more: bool = False) -> None:
        if value is not None:
            self.values.setdefault(Kind(name, unit, bar, more), []).append(value)

    def rows(self) -> Iterator[list[str]]:
        for kind, values in self.values.items():
            best = max(values) if kind.more else min(values)
            yield [kind.name, kind.unit, _number(best), _number(median(values)), _bar(kind, best)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _bar(kind: Kind, best: float) -> str:
    if kind.bar is None:
        return ""
    held = best >= kind.bar if kind.more else best <= kind.bar
    return f"{'≥' if kind.more else '≤'} {kind.bar:,g} {'✓' if held else '✗'}"


def appends(page: Page) -> None:
    for chats, rows, bars in ((200, 1, True), (200, 8, False), (1, 1, False)):
        for where, folder in (("disk", page.folder), ("RAM disk", RAM)):
            if not folder.is_dir() or (where == "RAM disk" and not bars):
                continue
            name = f"{chats} chats × {rows} row{'s' * (rows > 1)}, {where}"
            with tempfile.TemporaryDirectory(dir=folder) as store:
                found = uvloop.run(append(Path(store), chats, rows, page.seconds))
            disk = bars and where == "disk"
            page.note(f"append, {name}", "events/s", found.rows / found.seconds, 15_000 if disk else None, more=True)
            page.note(f"append, {name}", "us CPU/row", 1e6 * found.cpu / found.rows, 10 if bars else None)
            page.note(f"append, {name}: commit p50", "ms", percentile(found.waits, 50), 10 if bars else None)
            ram = bars and where != "disk"
            page.note(f"append, {name}: commit p99", "ms", percentile(found.waits, 99), 50 if ram else None)


def messages(page: Page) -> None:
    with _fresh(page) as server, serving(server):
        first_events(server, server.chat(), 5)
        times = first_events(server, server.chat(), max(10, int(20 * page.seconds)))
        for name, what in (("accepted", "202"), ("started", "first event"), ("word", "first word")):
            bar = 10 if name == "started" else None
            page.note(f"message sent → {what} p50", "ms", percentile(times[name], 50), bar)
            page.note(f"message sent → {what} p99", "ms", percentile(times[name], 99))


def replays(page: Page) -> None:
    with _fresh(page) as server:
        with serving(server):
            chat = server.chat()
        asyncio.run(long_chat(server.home / "crocevia.db", chat, 10_000))
        with serving(server):
            replay(server, server.chat())  # the first request of a process pays for more than itself
            cpu = server.cpu()
            for temperature in ("cold", "again"):
                took, events = replay(server, chat)
                if events != 10_000:
                    raise SystemExit(f"{events} events instead of 10,000")
                page.note(f"replay of 10,000 events, {temperature}", "ms", 1000 * took, 100)
            page.note("replay, server", "us CPU/event", 1e6 * (server.cpu() - cpu) / 20_000)


def subscribers(page: Page) -> None:
    count, seconds = page.subscribers, 2 * page.seconds
    with _fresh(page, words=int(seconds * 100 / 3), every_ms=30) as server, serving(server):
        chat = server.chat()
        before = pss_mib(server.pid)
        with readers(server, chat, count) as crowd:
            page.note(f"idle stream, {count:,} of them", "KiB", 1024 * (pss_mib(server.pid) - before) / count, 30)
            say(crowd, "begin")
            cpu, began = server.cpu(), time.perf_counter()
            server.send(chat, "speak")
            time.sleep(seconds)
            cpu, took = server.cpu() - cpu, time.perf_counter() - began
            found = _settled(crowd)
        if found["lost"] or found["least"] != found["most"]:
            raise SystemExit(f"subscribers saw {found['least']} to {found['most']} events, {found['lost']} were cut")
        name = f"{count:,} subscribers"
        page.note(f"{name}: events of the chat", "events/s", found["most"] / took, 95, more=True)
        page.note(f"{name}: delay p50", "ms", percentile(found["delays"], 50))
        page.note(f"{name}: delay p99", "ms", percentile(found["delays"], 99), 150)
        page.note(f"{name}: server", "cores", cpu / took, 1)
        page.note(f"{name}: all readers", "cores", found["cpu"] / took)


def _settled(crowd: subprocess.Popen[str]) -> dict[str, Any]:
    """The report once everybody has seen the same and no more comes."""
    before = -1
    for _ in range(60):
        time.sleep(1)
        far: dict[str, int] = json.loads(say(crowd, "seen"))
        if far["least"] == far["most"] == before:
            break
        before = far["most"]
    found: dict[str, Any] = json.loads(say(crowd, "report"))
    return found


def restarts(page: Page) -> None:
    with _fresh(page) as server:
        with serving(server):
            pass
        user = server.secrets
        asyncio.run(
            many_chats(server.home / "crocevia.db", user["user_id"], user["workspace_id"], server.team, 10_000, 100)
        )
        with serving(server) as took:
            page.note("restart with 10,000 chats, 100 open turns", "s", took, 2)


SECTIONS: dict[str, Callable[[Page], None]] = {
    "append": appends,
    "message": messages,
    "replay": replays,
    "subscribers": subscribers,
    "restart": restarts,
}


@contextmanager
def _fresh(page: Page, words: int = 10, every_ms: int = 0) -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(dir=page.folder))
    try:
        yield prepare(folder, script(words, every_ms))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str] | None = None) -> str:
    """Run, print the page; returns it."""
    parser = argparse.ArgumentParser(prog="python -m bench.log", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=5, help="per figure")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--subscribers", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, help="where the stores lie (default: a temporary folder)")
    chosen = parser.parse_args(arguments)
    if sys.platform != "linux":
        raise SystemExit("the benchmark reads /proc and pins CPUs: it runs on Linux")
    if unknown := set(chosen.sections) - set(SECTIONS):
        raise SystemExit(f"there is no {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is in a session of its own: end it too
    others = []
    with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="crocevia-bench-") as folder:
        page = Page(Path(folder), chosen.seconds, chosen.subscribers)
        cpus = os.sched_getaffinity(0)
        for run in range(chosen.runs):
            for name in chosen.sections or SECTIONS:
                print(f"run {run + 1} of {chosen.runs}: {name} …", file=sys.stderr, flush=True)
                os.sched_setaffinity(0, cpus if name == "append" else OWN_CPUS)
                busy, own, began = busy_seconds(), cpu_seconds(os.getpid()), time.perf_counter()
                SECTIONS[name](page)
                foreign = busy_seconds() - busy - (cpu_seconds(os.getpid()) - own)
                others.append(max(0.0, foreign / (time.perf_counter() - began)))
        os.sched_setaffinity(0, cpus)
    settings = f"{chosen.runs} runs, {chosen.seconds:g} s per figure."
    text = machine(settings) + "\n" + table(["what", "unit", "best", "median", "bar"], list(page.rows()))
    text += f"\nOther work on the machine meanwhile: {min(others):.1f} to {max(others):.1f} cores.\n"
    print(text)
    return text


if __name__ == "__main__":
    main()
