"""What the command line says when something is wrong: one clear line, what to do, an exit code, no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

import click

from crocevia.cli import i18n
from crocevia.cli.i18n import Line
from crocevia.core.declared import Refused
from crocevia.core.errors import Code, GatewayError, Sentence
from crocevia.core.texts import Language

P = ParamSpec("P")
T = TypeVar("T")


def language() -> Language:
    """The reader's language, from the environment; English unless it says Italian."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return "it" if os.environ[name].lower().startswith("it") else "en"
    return "en"


def told(key: str, /, **details: str | int | float) -> str:
    """A line of ours in the reader's language."""
    return i18n.text(i18n.line(key, **details), language())


def spoken(message: Line | Sentence) -> str:
    """A message in the reader's language."""
    return i18n.text(message, language())


def guarded(run: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a command; whatever it raises becomes one line and an exit code.

    1: it could not be done. 2: what was given is wrong (a bad file, a bad option).
    """
    try:
        return run(*args, **kwargs)
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        if os.environ.get("CROCEVIA_DEBUG"):
            raise
        for kind, explain in _EXPLAIN:
            if isinstance(error, kind):
                sys.exit(explain(error))
        complain(told("cli_unexpected", kind=type(error).__name__))
        sys.exit(1)


def _refused(error: Refused) -> int:
    for problem in error.problems:
        complain(f"{problem.place}: {spoken(problem.message)}")
    complain(spoken(error.message))
    return 2


def _failed(error: GatewayError) -> int:
    complain(spoken(error.message))
    hint = i18n.hint(error.message)
    if hint is not None:
        complain(spoken(hint))
    return 2 if error.code is Code.INVALID_REQUEST else 1


def _pipe_closed(error: BrokenPipeError) -> int:
    # Whoever was reading has left (`| head`); Python would complain once more while exiting.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _system(error: OSError) -> int:
    complain(told("cli_os_error", reason=error.strerror or type(error).__name__))
    return 1


_EXPLAIN: Final[tuple[tuple[type[Exception], Callable[[Any], int]], ...]] = (
    (Refused, _refused),
    (GatewayError, _failed),
    (BrokenPipeError, _pipe_closed),
    (OSError, _system),
)


def complain(line: str) -> None:
    """One line on the error stream."""
    click.echo(line, err=True)


def home_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--home DIR`: default `$CROCEVIA_HOME`, else the platform's user data folder."""
    return click.option(
        "--home",
        metavar="DIR",
        envvar="CROCEVIA_HOME",
        callback=lambda context, option, value: _home(value),
        help="The folder that holds everything [default: $CROCEVIA_HOME, else the user data folder].",
    )(command)


def _home(value: str | None) -> Any:
    from pathlib import Path

    from crocevia.storage.home import Home

    if value:
        return Home(Path(value).expanduser().absolute())
    import platformdirs

    return Home(Path(platformdirs.user_data_dir("crocevia", appauthor=False)))
