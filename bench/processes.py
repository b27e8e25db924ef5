"""Servers as processes: start, pin, stop; CPU time and memory of a whole process tree, read from /proc (Linux)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


_CPUS: set[int] = os.sched_getaffinity(0) if sys.platform == "linux" else {0}
SERVER_CPU = {min(_CPUS)}
"""The one CPU that the server under test gets."""
OWN_CPUS = _CPUS - SERVER_CPU or _CPUS
"""The CPUs of the mock and the generator: the others, or the same one when there is only one."""


@contextmanager
def running(
    command: Sequence[str], *, cpus: set[int], log: Path, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process pinned to `cpus` with its output in `log`, and its whole group gone at the end."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask its group to end, insist after five seconds."""
    for sign in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, sign)
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                continue
    process.wait(timeout=5)


def tree(root: int) -> list[int]:
    """`root` and all its descendants that are alive."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on (which the manual counts as the third)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def cpu_seconds(root: int) -> float:
    """User and system time of the tree so far, children that ended and were waited for included. Ticks of 10 ms."""
    total = 0
    for pid in tree(root):
        if fields := _stat(pid):
            total += sum(int(field) for field in fields[11:15])
    return total / _TICKS


def pss_mib(root: int) -> float:
    """Proportional memory of the tree in MiB."""
    total = 0
    for pid in tree(root):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def busy_seconds() -> float:
    """CPU time of the whole machine spent on anything but idling."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / _TICKS


def wait_for(ready: Callable[[], bool], *, seconds: float, every: float = 0.005) -> float:
    """Poll a callable until it is true; seconds it took. Raises TimeoutError."""
    began = time.perf_counter()
    while not ready():
        if time.perf_counter() - began > seconds:
            raise TimeoutError
        time.sleep(every)
    return time.perf_counter() - began
