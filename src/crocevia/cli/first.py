"""`crocevia init` and `crocevia serve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crocevia.cli.output import home_option, told
from crocevia.core.errors import Code, GatewayError

if TYPE_CHECKING:
    from crocevia.config import ServerSettings
    from crocevia.runtime.control.init import Initialised
    from crocevia.storage.home import Home


_host = click.option("--host", metavar="H", help="The address to listen on [default: 127.0.0.1].")
_port = click.option(
    "--port", metavar="P", type=click.IntRange(0, 65535), help="The port to listen on [default: 8111]."
)


@click.command()
@home_option
@_host
@_port
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def init(home: Home, host: str | None, port: int | None, as_json: bool) -> None:
    """Create the first objects of a home; prints every secret exactly once. Links are for the host and port given."""
    from crocevia.config import load
    from crocevia.core import json
    from crocevia.runtime.control import init as control
    from crocevia.runtime.control.settings_file import write_quickstart

    url = address(load(home, flags={"server.host": host, "server.port": port}).server)
    made = control.init(home, url)
    write_quickstart(home)
    if as_json:
        click.echo(json.encode(made).decode())
    else:
        welcome(made, url)


@click.command()
@home_option
@_host
@_port
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The server's settings [default: HOME/crocevia.toml].",
)
def serve(home: Home, host: str | None, port: int | None, config: Path | None) -> None:
    """Serve; on an empty home, run init first."""
    from crocevia.config import load

    flags = {"server.host": host, "server.port": port}
    settings = load(home, file=config, flags=flags)
    if prepare(home, settings.server) and config is None:
        settings = load(home, flags=flags)
    from crocevia.app import run

    sys.exit(run(settings, home))


def prepare(home: Home, server: ServerSettings) -> bool:
    """Make sure that the home has its first objects, and say so if they were made now; whether they were."""
    from crocevia.runtime.control import init as control
    from crocevia.runtime.control.settings_file import write_quickstart
    from crocevia.storage.migrate import ensure

    if home.database.exists():
        ensure(home.database)
        if control.is_initialised(home):
            return False
    try:
        made = control.init(home, address(server))
    except GatewayError as error:
        if error.code is Code.CONFLICT:  # another process was faster: its output has the secrets
            return False
        raise
    write_quickstart(home)
    welcome(made, address(server))
    return True


def address(server: ServerSettings) -> str:
    """Where callers on this machine reach the server."""
    if server.public_url:
        return server.public_url.rstrip("/")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(server.host, server.host)  # noqa: S104  # compared
    return f"http://[{host}]:{server.port}" if ":" in host else f"http://{host}:{server.port}"


_STREAM = """curl -sN {url}/agent \\
  -H "Content-Type: application/json" \\
  -H "X-Pepper-Key: {key}" -H "X-Pepper-Project: {project}" \\
  -d '{{"stream": true, "messages": [{{"role": "user", "content": "{question}"}}]}}'"""

_TOOL = """curl -sN {url}/agent \\
  -H "Content-Type: application/json" \\
  -H "X-Pepper-Key: {key}" -H "X-Pepper-Project: {project}" \\
  -d '{{
    "stream": true,
    "messages": [{{"role": "user", "content": "{question}"}}],
    "tools": [{{
      "name": "get_home_status",
      "description": "Short status of the home: presence, gates, temperature, alarm.",
      "parameters": {{"type": "object", "properties": {{}}}}
    }}]
  }}'"""


def commands(url: str, project: str, key: str) -> tuple[str, str]:
    """Two commands to paste: one streams an answer, the other a tool call."""
    return (
        _STREAM.format(url=url, key=key, project=project, question=told("welcome_question")),
        _TOOL.format(url=url, key=key, project=project, question=told("welcome_tool_question")),
    )


def welcome(made: Initialised, url: str) -> None:
    """Everything that `init` made, for a person. Secrets appear here and nowhere else."""
    answer, tool = commands(url, made.project, "$CROCEVIA_PROJECT_KEY")
    lines = [
        told("welcome_once"),
        "",
        f"  {told('welcome_setup')}: {made.setup_url}",
        f"  {told('welcome_operator')}: {made.operator_token}",
        f"  {told('welcome_api_key')}: {made.api_key}",
        f"  user {made.user_id} · workspace {made.workspace_id} · team {made.team_id}",
        "",
        told("welcome_answer", project=made.project),
        "",
        f"export CROCEVIA_PROJECT_KEY={made.project_key}",
        answer,
        "",
        told("welcome_tool"),
        "",
        tool,
        "",
    ]
    click.echo("\n".join(lines))
    sys.stdout.flush()
