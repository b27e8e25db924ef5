"""`crocevia costs`: what turns cost, when a price becomes known after their end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

from crocevia.cli.output import home_option, told
from crocevia.cli.store import actor, reading, writing

if TYPE_CHECKING:
    from crocevia.runtime.control.costs import PricingReport
    from crocevia.storage.home import Home

_GROUP: Final = 500  # turns in one transaction: a running server waits no longer than for these


@click.group()
def costs() -> None:
    """Costs of turns whose price was not known when they ran."""


@costs.command()
@click.option("--dry-run", is_flag=True, help="Show what would be completed, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@home_option
def reconcile(dry_run: bool, as_json: bool, home: Home) -> None:
    """Complete pending costs with the prices known now, from the tokens that were recorded.

    A price that was declared counts for the calls before it too; one of the public list is that of the call's day.
    Only completions change: events and snapshots stay as they are, and budgets keep what they settled.
    """
    from crocevia.core import json
    from crocevia.runtime.control import costs as control

    now = time.time()
    found = reading(home, lambda tx: control.find(tx, now))
    late = found.late if dry_run else []
    for start in range(0, 0 if dry_run else len(found.late), _GROUP):
        with writing(home) as tx:
            late += control.settle(tx, actor(), found.late[start : start + _GROUP], now)
    made = control.report(late, found.unpriced)
    if as_json:
        click.echo(json.encode(made).decode())
    else:
        _show(made, dry_run)


def _show(made: PricingReport, dry_run: bool) -> None:
    names = [row.model or told("costs_nameless") for row in made.models]
    width = max(map(len, names), default=0)
    for name, row in zip(names, made.models, strict=True):
        notes = [told("spend_calls", count=row.priced)]
        notes += [told("spend_unpriced", count=row.unpriced)] if row.unpriced else []
        click.echo("  ".join([f"  {name:<{width}}  {row.cost_usd:>14.6f}", *notes]))
    click.echo(told("costs_found" if dry_run else "costs_done", completed=made.completed, advanced=made.advanced))
