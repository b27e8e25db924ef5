"""`crocevia doctor`: one line per thing that was looked at, with what to do where something is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from crocevia.cli.findings import Finding, failed, warn
from crocevia.cli.output import home_option, spoken, told
from crocevia.core.errors import GatewayError

if TYPE_CHECKING:
    from crocevia.storage.home import Home

_MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "bad": ("BAD ", "red")}


@click.command()
@home_option
@click.option("--url", envvar="CROCEVIA_URL", metavar="URL", help="Also stream an answer from this address.")
@click.option("--project", envvar="CROCEVIA_PROJECT", default="default", show_default=True, metavar="NAME")
@click.option("--key", envvar="CROCEVIA_PROJECT_KEY", metavar="KEY", help="The project's key [$CROCEVIA_PROJECT_KEY].")
@click.option("--timeout", type=click.FloatRange(1, 900), default=60.0, show_default=True, help="Seconds of silence.")
def doctor(home: Home, url: str | None, project: str, key: str | None, timeout: float) -> None:
    """Check settings, store, engines, and a stream as a caller sees it. Exit code 1 if anything is bad."""
    from crocevia.cli import health

    worst = show(health.settings(home))
    worst |= show(health.store(home))
    worst |= show(health.engines(home))
    worst |= show(_stream(url, project, key, timeout))
    sys.exit(1 if worst else 0)


def show(findings: Iterable[Finding]) -> bool:
    """Print findings as they come; whether any is bad."""
    any_bad = False
    for finding in findings:
        mark, colour = _MARKS[finding.level]
        click.echo(f"{click.style(mark, fg=colour)}  {finding.area:<10} {spoken(finding.message)}")
        if finding.hint is not None:
            click.echo(f"      {'':<10} → {spoken(finding.hint)}")
        any_bad |= finding.level == "bad"
    return any_bad


def _stream(url: str | None, project: str, key: str | None, timeout: float) -> Iterable[Finding]:
    from crocevia.cli import health
    from crocevia.cli.wire import Opened, Read, stream

    if url is None:
        return
    if not key:
        yield warn("stream", "doctor_no_key")
        return
    head: Opened | None = None
    reads: list[Read] = []
    try:
        for piece in stream(url, project, key, told("doctor_question"), timeout=timeout):
            if isinstance(piece, Opened):
                head = piece
            else:
                reads.append(piece)
    except GatewayError as error:
        yield failed("stream", error.message)
    if head is not None:
        yield from health.streaming(head, reads)
