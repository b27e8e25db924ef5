"""`crocevia keys`: the keys that sign API keys and requests to client tools."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from crocevia.cli.output import home_option, told

if TYPE_CHECKING:
    from crocevia.storage.home import Home

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def keys() -> None:
    """The keys that sign API keys and requests to client tools.

    Every one of them is published at /.well-known/jwks.json. Rotating adds one and takes none away.
    """


@keys.command("list")
@_json
@home_option
def listed(as_json: bool, home: Home) -> None:
    """Every key, oldest first, and what it does now."""
    found = _listed(home)
    if as_json:
        _print({"keys": found})
        return
    for key in found:
        state = told(f"keys_state_{key['state']}", at=key["signs_from"])
        click.echo(f"{key['kid']}  {state}")


@keys.command()
@_json
@home_option
def rotate(as_json: bool, home: Home) -> None:
    """Publish a new key, which signs ten minutes later, when every reader of the list knows it."""
    from crocevia.cli.store import actor, writing
    from crocevia.runtime.control.audit import note
    from crocevia.runtime.signing_keys import Signer

    with writing(home) as tx:
        kid = Signer(home).rotate()
        note(tx, actor(), "rotate", "signing key", kid)
    (made,) = (key for key in _listed(home) if key["kid"] == kid)
    if as_json:
        _print(made)
    else:
        click.echo(told("keys_rotated", kid=kid, at=made["signs_from"]))


@keys.command()
@click.argument("kid", metavar="KID")
@home_option
def remove(kid: str, home: Home) -> None:
    """End a key that signs no more, and with it every API key that it signed."""
    from crocevia.cli.store import actor, writing
    from crocevia.runtime.control.audit import note
    from crocevia.runtime.signing_keys import Signer
    from crocevia.storage import meta

    with writing(home) as tx:
        note(tx, actor(), "delete", "signing key", kid)
        meta.bump_revision(tx)  # a running server forgets whom it has recognised
        Signer(home).remove(kid)
    click.echo(told("keys_removed", kid=kid))


def _listed(home: Home) -> list[dict[str, str]]:
    from crocevia.cli.store import ensure_store
    from crocevia.runtime.signing_keys import PUBLISH_SECONDS, Signer

    ensure_store(home)
    signer = Signer(home)
    known, current = signer.keys(), signer.current()
    return [
        {
            "kid": key.id,
            "state": "signs" if key.id == current.id else "waits" if key.born > current.born else "verifies",
            "signs_from": datetime.fromtimestamp(key.born + PUBLISH_SECONDS, UTC).isoformat(timespec="seconds"),
        }
        for key in known
    ]


def _print(value: Any) -> None:
    from crocevia.core import json

    click.echo(json.encode(value).decode())
