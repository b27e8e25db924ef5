"""`crocevia waiting`: what turns wait for, and an end to what nobody answers."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from crocevia.cli.output import home_option, told
from crocevia.cli.store import actor, reading, writing

if TYPE_CHECKING:
    from crocevia.storage.home import Home

_LONGEST: Final = 1000


@click.group()
def waiting() -> None:
    """What turns wait for: approvals, and results of tools that the app runs."""


@waiting.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@home_option
def listed(as_json: bool, home: Home) -> None:
    """Every open request, the most urgent first."""
    from crocevia.core import json
    from crocevia.runtime.control import operator_view

    found = reading(home, lambda tx: operator_view.requests(tx, time.time()))
    if as_json:
        click.echo(json.encode({"waiting": found}).decode())
        return
    for row in found:
        until = datetime.fromtimestamp(row.deadline, UTC).isoformat(timespec="seconds")
        click.echo(
            told(f"waiting_{row.kind}", id=row.id, agent=row.agent, tool=row.tool, until=until, chat=row.chat_id)
        )
    if not found:
        click.echo(told("waiting_none"))


@waiting.command()
@click.argument("request_id", metavar="ID")
@click.option("--reason", default="", metavar="TEXT", help="What the agent is told.")
@home_option
def end(request_id: str, reason: str, home: Home) -> None:
    """End an open request: the tool has failed, the approval is refused. The turn goes on."""
    from crocevia.core.errors import GatewayError, Reason
    from crocevia.log import Created
    from crocevia.log.sqlite import put_command
    from crocevia.runtime.control import operator_view
    from crocevia.runtime.control.audit import note
    from crocevia.runtime.turns.commands import ending
    from crocevia.storage import meta

    words, now = reason[:_LONGEST] or "an operator ended it", time.time()
    with writing(home) as tx:
        found = next((row for row in operator_view.requests(tx, now) if row.id == request_id), None)
        if found is None:
            raise GatewayError(Reason.OBJECT_MISSING, kind="request")
        said = ending(found.kind, found.turn, found.id, words, int(now * 1000))
        if not isinstance(put_command(tx, found.chat_id, said), Created):
            raise GatewayError(Reason.TOOL_ALREADY_RESOLVED)
        note(tx, actor(), "ended", "chats", found.chat_id, {"id": (None, found.id)})
        meta.bump_revision(tx)  # a running server looks at what was said
    click.echo(told("waiting_ended", id=found.id))
