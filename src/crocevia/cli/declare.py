"""`crocevia apply` and `crocevia export`."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import click

from crocevia.cli.output import complain, home_option, told
from crocevia.cli.store import ensure_store

if TYPE_CHECKING:
    from crocevia.storage.home import Home


@click.command()
@click.argument("file", metavar="FILE", type=click.File("rb"))
@home_option
def apply(file: IO[bytes], home: Home) -> None:
    """Create or update what FILE declares: all of it, or nothing. «-» reads standard input.

    A running server follows within a second. The key of a new project is printed here, and never again.
    """
    from crocevia.engines.registry import check_engine
    from crocevia.runtime.control import apply as control
    from crocevia.runtime.control.declarations import LARGEST, parse

    declaration = parse(file.read(LARGEST + 1))
    ensure_store(home)
    applied = control.apply(home, declaration, check_engine=check_engine)
    for change in applied.changes:
        complain(f"{told('change_' + change.what)} {change.table} {change.name}")
        for field, (before, after) in change.fields.items():
            complain(f"  {field}: {_short(before)} → {_short(after)}" if before or after else f"  {field}")
    for project, key in applied.new_keys.items():
        click.echo(told("apply_key", project=project, key=key))
    complain(told("apply_done", revision=applied.revision))


@click.command()
@home_option
def export(home: Home) -> None:
    """Print everything declared, in the format of apply, without secrets."""
    from crocevia.runtime.control import apply as control
    from crocevia.runtime.control.declarations import spell

    ensure_store(home)
    click.echo(spell(control.export(home)), nl=False)


def _short(value: str | None) -> str:
    return told("change_default") if value is None else value.replace("\n", " ")
