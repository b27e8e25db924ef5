"""`python -m bench --against REV`: this tree beside another commit, by turns on one machine.

One round starts REV, this tree and REV again, each on a new home, and measures the same figures of all three. The
ratio of a round is this tree over the mean of the two starts of REV; the two starts over each other are what a commit
differs from itself by, here and today. A change is seen only where it is larger than that.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

import uvloop

from .figures import per_unit
from .load import load
from .processes import pss_mib
from .report import machine, table
from .servers import AGENT, CHAT, Target, crocevia, upstream

AT_A_TIME = 64
NEARLY_ALIKE = 0.03
"""How far a median may be from 1 and still count as the same."""
FIGURES = {
    f"`{AGENT}` us/call": (AGENT, False),
    f"`{CHAT}` us/call": (CHAT, False),
    f"`{AGENT}` us/token": (AGENT, True),
    f"`{CHAT}` us/token": (CHAT, True),
}
STARTING = ("cold start s", "idle MiB")


@dataclass
class Compared:
    """One figure over all rounds: what REV gave at its first and second start, and what this tree gave between them."""

    name: str
    first: list[float] = field(default_factory=list)
    here: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """This tree over REV, a number per round."""
        return [mine / mean(both) for mine, *both in zip(self.here, self.first, self.again, strict=True)]

    @property
    def spread(self) -> float:
        """The share by which two starts of REV differed in a round: half of the rounds differed by more."""
        return median(abs(again / first - 1) for first, again in zip(self.first, self.again, strict=True))

    @property
    def verdict(self) -> str:
        off = median(self.ratios) - 1
        if abs(off) <= max(NEARLY_ALIKE, self.spread):
            return "the same"
        return f"{abs(off):.1%} {'more' if off > 0 else 'less'}"


def checked_out(revision: str, folder: Path) -> Path:
    """The sources of a commit, written below `folder`; raises SystemExit where git does not know it."""
    done = subprocess.run(["git", "archive", revision, "src"], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"--against {revision}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def compare(revision: str, folder: Path, *, rounds: int, seconds: float, tokens: int, spacing_ms: float) -> str:
    """Measure and return the page. seconds: per figure, twice that for streams."""
    compared = {name: Compared(name) for name in (*FIGURES, *STARTING)}
    here = Path(__file__).resolve().parent.parent / "src"
    there = checked_out(revision, folder / "there")
    with upstream(folder, 0, tokens, spacing_ms) as mock:
        port = mock.ask(False).port
        for turn in range(rounds):
            for which, source in (("first", there), ("here", here), ("again", there)):
                print(f"round {turn + 1} of {rounds}: {which if source == here else revision} …", file=sys.stderr)
                home = folder / f"{which}-{turn}"
                home.mkdir()
                with crocevia(home, port, "openai-chat", source=source) as targets:
                    for name, value in _measured(targets, seconds).items():
                        getattr(compared[name], which).append(value)
    return page(revision, list(compared.values()), rounds=rounds, seconds=seconds)


def _measured(targets: list[Target], seconds: float) -> dict[str, float]:
    doors = {target.door: target for target in targets}
    found = {STARTING[0]: doors[AGENT].cold_start or 0.0, STARTING[1]: pss_mib(doors[AGENT].pid)}
    for name, (door, streamed) in FIGURES.items():
        target, window = doors[door], 2 * seconds if streamed else seconds
        run = load(target.ask(streamed), AT_A_TIME, seconds=window, warm_up=min(1.0, seconds / 2), clock=target.cpu)
        measured = uvloop.run(run)
        value = per_unit(measured, streamed=streamed)
        if value is None or measured.tally.failed:
            raise SystemExit(f"{name}: {measured.tally.failed} calls failed ({measured.tally.failure})")
        found[name] = value
    return found


def page(revision: str, compared: list[Compared], *, rounds: int, seconds: float) -> str:
    """The table, as Markdown."""
    rows = [
        [
            each.name,
            f"{median([*each.first, *each.again]):.3g}",
            f"{median(each.here):.3g}",
            f"{median(each.ratios):.3f}",
            f"{min(each.ratios):.3f}-{max(each.ratios):.3f}",
            f"{each.spread:.1%}",
            each.verdict,
        ]
        for each in compared
    ]
    head = ["", revision, "here", "ratio, median", "ratios", f"{revision} against itself", "verdict"]
    said = f"{rounds} rounds, {AT_A_TIME} at a time, {seconds:g} s per figure, {2 * seconds:g} s for streams."
    return "\n".join([machine(said), "", table(head, rows)])
