"""The command line. Commands import what they need when they run, so that `--help` and errors are instant."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from crocevia.cli.output import guarded

# One line per command: module and function; the help that `crocevia --help` shows without importing it.
_COMMANDS: Final = {
    "init": ("first", "Create the first objects of a home; prints every secret exactly once."),
    "serve": ("first", "Serve; on an empty home, run init first."),
    "apply": ("declare", "Create or update what FILE declares: all of it, or nothing."),
    "export": ("declare", "Print everything declared, in the format of apply, without secrets."),
    "project": ("project", "What a project spent, corrections, stored conversations."),
    "costs": ("costs", "Costs of turns whose price was not known when they ran: reconcile."),
    "panel": ("panel", "A new setup link for the panel."),
    "keys": ("keys", "The keys that sign API keys and requests to client tools: list, rotate, remove."),
    "waiting": ("waiting", "What turns wait for: list, and end what nobody answers."),
    "model": ("model", "The weights of the embedded model."),
    "doctor": ("doctor", "Check settings, store, engines, and a stream as a caller sees it."),
    "ask": ("ask", "Put one question and stream the answer."),
}


class _Commands(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command = getattr(import_module(f".{_COMMANDS[name][0]}", __name__), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def invoke(self, context: click.Context) -> object:
        return guarded(super().invoke, context)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="crocevia", prog_name="crocevia")
def main() -> None:
    """A self-hosted agent gateway."""
