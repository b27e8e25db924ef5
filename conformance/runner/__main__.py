"""Every case against every driver, side by side.

    python -m conformance.runner NAME=COMMAND… [--only TEXT]

Prints a table of the cases' groups and every failure; exits with 1 if there was any.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from .cases import Case, all_cases
from .program import DriverGoneError, Program

Results = dict[str, dict[str, str]]  # driver -> case -> "" or why it failed


async def run_driver(command: list[str], cases: list[Case]) -> dict[str, str]:
    results = {}
    async with Program(command) as program:
        hello = await program.ask({"do": "hello"}, lambda _: None)
        print(f"  {hello['result']}", flush=True)
        for case in cases:
            with tempfile.TemporaryDirectory() as folder:
                results[f"{case.group} {case.name}"] = await verdict(case, program, Path(folder))
    if program.status != 0:
        results["the driver exits with 0 at the end of its input"] = f"it exited with {program.status}"
    return results


async def verdict(case: Case, program: Program, folder: Path) -> str:
    try:
        await case.play(program, folder)
    except DriverGoneError:
        raise
    except (AssertionError, TimeoutError, KeyError, TypeError, AttributeError, ValueError) as problem:
        return f"{type(problem).__name__}: {problem}"[:2000]
    return ""


def table(cases: list[Case], results: Results) -> str:
    groups: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        groups[case.group].append(f"{case.group} {case.name}")
    width = max(map(len, groups)) + 2
    lines = ["".join([f"{'':{width}}{'cases':>7}", *(f"{name:>14}" for name in results)])]
    for group, names in groups.items():
        cells = [sum(not outcome[name] for name in names if name in outcome) for outcome in results.values()]
        told = ("all" if cell == len(names) else f"{cell} of {len(names)}" for cell in cells)
        lines.append("".join([f"{group:{width}}{len(names):>7}", *(f"{text:>14}" for text in told)]))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="conformance.runner", description=__doc__)
    parser.add_argument("drivers", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--only", default="", help="cases whose name or group contains this")
    given = parser.parse_args()
    cases = [case for case in all_cases() if given.only in f"{case.group} {case.name}"]
    results: Results = {}
    for entry in given.drivers:
        name, _, command = entry.partition("=")
        print(f"{name}: {command}", flush=True)
        results[name] = asyncio.run(run_driver(shlex.split(command), cases))
    print("\n" + table(cases, results) + "\n")
    failures = [(name, case, why) for name, told in results.items() for case, why in told.items() if why]
    for name, case, why in failures:
        print(f"FAILED {name}: {case}\n       {why}")
    total = sum(map(len, results.values()))
    print(f"{total - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not total else 0


if __name__ == "__main__":
    sys.exit(main())
