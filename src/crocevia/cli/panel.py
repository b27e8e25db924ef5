"""`crocevia panel`: the panel's password, from the machine that it runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from crocevia.cli.output import home_option, told

if TYPE_CHECKING:
    from crocevia.storage.home import Home


@click.group()
def panel() -> None:
    """A new setup link for the panel."""


@panel.command()
@home_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reset(home: Home, as_json: bool) -> None:
    """Print a link that sets the panel's password once.

    The present password works until then; whoever uses the link ends every session.
    """
    from crocevia.cli.first import address
    from crocevia.cli.store import actor, writing
    from crocevia.config import load
    from crocevia.core import json
    from crocevia.runtime.control.audit import note
    from crocevia.runtime.control.init import setup_link

    url = address(load(home).server)
    with writing(home) as tx:
        link = setup_link(tx, home, url)
        note(tx, actor(), "reset", "password", "operator")
    if as_json:
        click.echo(json.encode({"setup_url": link}).decode())
    else:
        click.echo(f"{told('welcome_setup')}: {link}")
        click.echo(told("panel_reset_after"))
