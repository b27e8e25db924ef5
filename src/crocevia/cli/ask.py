"""`crocevia ask`: one question from the shell."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import click

from crocevia.cli.output import complain, home_option, told
from crocevia.core.errors import GatewayError, Reason

if TYPE_CHECKING:
    from crocevia.runtime.catalogue import Catalogue
    from crocevia.storage.home import Home


@click.command()
@click.argument("text")
@home_option
@click.option("--project", envvar="CROCEVIA_PROJECT", default="default", show_default=True, metavar="NAME")
@click.option("--key", envvar="CROCEVIA_PROJECT_KEY", metavar="KEY", help="The project's key [$CROCEVIA_PROJECT_KEY].")
@click.option("--url", envvar="CROCEVIA_URL", metavar="URL", help="The server to ask [default: the one of this home].")
def ask(text: str, home: Home, project: str, key: str | None, url: str | None) -> None:
    """Put one question and stream the answer.

    With the project's key it asks the running server; otherwise it starts the project's engine here, for this
    question only.
    """
    if not text.strip():
        raise click.UsageError(told("ask_empty"))
    if key and (url or _served(home)):
        _ask_server(url or _address(home), project, key, text)
    elif url:
        raise click.UsageError(told("ask_key_missing"))
    else:
        asyncio.run(_ask_here(home, project, text))


def _served(home: Home) -> bool:
    from crocevia.storage.home import holder

    return holder(home) is not None


def _address(home: Home) -> str:
    from crocevia.cli.first import address
    from crocevia.config import load

    return address(load(home).server)


def _ask_server(url: str, project: str, key: str, text: str) -> None:
    from crocevia.cli.wire import Opened, stream

    refused: bytes | None = None
    ended = False
    for piece in stream(url, project, key, text, timeout=60):
        if isinstance(piece, Opened):
            refused = b"" if piece.status != 200 else None
        elif refused is not None:
            refused += piece.data[: 65536 - len(refused)]
        else:
            ended |= any(_show(name, data) for name, data in piece.events)
    if refused is not None:
        raise GatewayError(Reason.ASK_REFUSED, message=_message_of(refused))
    click.echo()
    if not ended:
        raise GatewayError(Reason.ASK_CUT)


def _show(name: str, data: Any) -> bool:
    """Print an event; whether the answer is complete."""
    fields = data if isinstance(data, dict) else {}
    if name == "delta":
        click.echo(fields.get("text", ""), nl=False)
    elif name == "error":
        raise GatewayError(Reason.ASK_REFUSED, message=str(fields.get("message", "")))
    return name == "done"


def _message_of(body: bytes) -> str:
    try:
        found = json.loads(body)
    except ValueError:
        return "?"
    while isinstance(found, dict) and isinstance(found.get("error"), dict):
        found = found["error"]
    return str(found.get("message") or found.get("error") or "?") if isinstance(found, dict) else "?"


async def _ask_here(home: Home, project: str, text: str) -> None:
    from contextlib import aclosing

    from crocevia.core.calls import ModelRequest
    from crocevia.core.events import TextDelta
    from crocevia.core.messages import user
    from crocevia.engines.context import EngineContext
    from crocevia.engines.registry import build
    from crocevia.engines.upstream.http import HttpClient

    catalogue = _catalogue(home)
    spec = catalogue.projects.get(project)
    if spec is None or spec.model not in catalogue.models:
        raise GatewayError(Reason.ASK_NO_PROJECT, project=project)
    model = catalogue.models[spec.model]
    complain(told("ask_starting", engine=model.engine))
    http = HttpClient()
    context = EngineContext(http=http, models_dir=home.models, api_key=catalogue.engine_key(model.engine))
    engine = build(catalogue.engines[model.engine], context)
    request = ModelRequest(
        model=model.upstream, messages=(user(text),), system=model.instructions, reasoning=model.reasoning
    )
    try:
        deadline = asyncio.get_running_loop().time() + 900
        async with aclosing(engine.call(request, deadline=deadline)) as batches:
            async for batch in batches:
                click.echo("".join(event.text for event in batch if isinstance(event, TextDelta)), nl=False)
        click.echo()
    finally:
        await engine.close()
        await http.close()


def _catalogue(home: Home) -> Catalogue:
    from crocevia.cli.store import ensure_store
    from crocevia.runtime.catalogue import load
    from crocevia.storage.database import snapshot

    ensure_store(home)
    with snapshot(home.database) as tx:
        return load(tx, home)
