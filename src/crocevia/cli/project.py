"""`crocevia project`: what a project spent, corrections, and its stored conversations."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from crocevia.cli.output import home_option, told
from crocevia.cli.store import actor, reading, writing

if TYPE_CHECKING:
    from crocevia.runtime.control.spending import SpendingReport
    from crocevia.storage.home import Home


@click.group()
def project() -> None:
    """What a project spent, corrections, stored conversations."""


@project.command()
@click.argument("name", metavar="NAME")
@click.option("--days", type=click.IntRange(1, 366), default=7, show_default=True, help="Today and the days before.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@home_option
def spend(name: str, days: int, as_json: bool, home: Home) -> None:
    """Today's spend and budget, and recent days."""
    from crocevia.core import json
    from crocevia.runtime.control import spending

    found = reading(home, lambda tx: spending.report(tx, name, time.time(), days))
    if as_json:
        click.echo(json.encode(found).decode())
    else:
        _show(found)


@project.command(context_settings={"ignore_unknown_options": True})
@click.argument("name", metavar="NAME")
@click.argument("amount", metavar="AMOUNT")
@click.option("--reason", required=True, help="Why; it is kept in the audit list.")
@home_option
def correct(name: str, amount: str, reason: str, home: Home) -> None:
    """Add AMOUNT (USD) to today's spend; a negative one gives back. A running server follows within a second."""
    from crocevia.runtime.control import spending

    with writing(home) as tx:
        found = spending.correct(tx, actor(), name, amount, reason, time.time())
    _show(found)


@project.command()
@click.argument("name", metavar="NAME")
@click.argument("conversation", metavar="[CONVERSATION]", required=False)
@click.option("--all", "everything", is_flag=True, help="Every conversation of the project.")
@home_option
def forget(name: str, conversation: str | None, everything: bool, home: Home) -> None:
    """Delete a stored conversation of the classic API."""
    from crocevia.runtime.control import spending

    if (conversation is None) != everything:
        raise click.UsageError(told("forget_which"))
    with writing(home) as tx:
        count = spending.forget(tx, name, conversation)
    click.echo(told("forgotten", count=count))


def _show(found: SpendingReport) -> None:
    today = found.days[0]
    if found.daily_budget_usd is None:
        click.echo(told("spend_unlimited", project=found.project, spent=_usd(today.spent)))
    else:
        click.echo(
            told(
                "spend_today",
                project=found.project,
                spent=_usd(today.spent),
                budget=_usd(found.daily_budget_usd),
                reserved=_usd(today.reserved),
                left=_usd(found.remaining_usd or 0),
            )
        )
    hours, minutes = divmod(-(-found.resets_in // 60), 60)
    click.echo(told("spend_resets", hours=hours, minutes=minutes, timezone=found.timezone))
    for row in found.days:
        notes = [told("spend_corrected", amount=_usd(row.corrected))] if row.corrected else []
        notes += [told("spend_unpriced", count=row.unpriced)] if row.unpriced else []
        line = f"  {row.day}  {_usd(row.spent):>14}  {told('spend_calls', count=row.calls)}"
        click.echo("  ".join([line, *notes]))


def _usd(amount: float) -> str:
    return f"{amount:.6f}"
