"""`crocevia model`: the weights of the embedded model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from crocevia.cli.output import complain, home_option, told

if TYPE_CHECKING:
    from crocevia.engines.llama.pull import Progress
    from crocevia.storage.home import Home


@click.group()
def model() -> None:
    """The weights of the embedded model."""


@model.command()
@click.argument("name", metavar="[NAME]", required=False, default="")
@click.option("--quality", is_flag=True, help="The larger model: better answers, more memory and time.")
@home_option
def pull(name: str, quality: bool, home: Home) -> None:
    """Fetch weights: checked by SHA-256, several sources, resumable."""
    from crocevia.engines.llama import weights
    from crocevia.engines.llama.pull import pull as fetch

    if quality and name:
        raise click.UsageError(told("model_name_or_quality"))
    name = name or (weights.QUALITY if quality else weights.DEFAULT)
    home.create()
    with _Bar(weights.known(name).title) as bar:
        path = fetch(name, home.models, bar.report)
    click.echo(told("model_ready", path=str(path)))


class _Bar:
    """A progress bar on a terminal, a line per tenth elsewhere; what a source says goes to the error stream."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._tenth = 0
        self._rich: Any = None
        self._task: Any = None

    def __enter__(self) -> _Bar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
            from rich.progress import TransferSpeedColumn as Speed

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), Speed(), TimeRemainingColumn())
            self._rich = Progress(*columns, console=Console(stderr=True))
            self._task = self._rich.add_task(self._title, total=None)
            self._rich.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._rich is not None:
            self._rich.stop()

    def report(self, progress: Progress) -> None:
        """Show how far a pull is."""
        if progress.note is not None:
            complain(progress.note) if self._rich is None else self._rich.console.print(progress.note, markup=False)
        if self._rich is not None:
            self._rich.update(self._task, completed=progress.done, total=progress.total)
            return
        tenth = progress.done * 10 // max(progress.total, 1)
        if tenth > self._tenth:
            self._tenth = tenth
            complain(f"{self._title}: {tenth * 10} %")
