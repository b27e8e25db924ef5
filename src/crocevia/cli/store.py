"""A home's store as commands use it, beside a server that may be running."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from crocevia.runtime.control.audit import Actor
    from crocevia.storage.database import Transaction
    from crocevia.storage.home import Home

T = TypeVar("T")


def ensure_store(home: Home) -> None:
    """Bring the store to the present schema. Raises GatewayError(CONFLICT) on a home without one."""
    from crocevia.core.errors import GatewayError, Reason
    from crocevia.storage.migrate import ensure

    if not home.database.exists():
        raise GatewayError(Reason.HOME_NOT_INITIALISED)
    ensure(home.database)


def actor() -> Actor:
    """Who is at work, for the audit list: the user of this machine."""
    from crocevia.runtime.control.audit import Actor

    try:
        account = f"cli:{getpass.getuser()}"
    except (OSError, KeyError):  # no such user on this machine, as in some containers
        account = "cli"
    return Actor(account=account, address="local")


def reading(home: Home, work: Callable[[Transaction], T]) -> T:
    """What `work` finds in the home's database as it is now. Raises GatewayError."""
    from crocevia.storage.database import snapshot

    ensure_store(home)
    with snapshot(home.database) as tx:
        return work(tx)


@contextmanager
def writing(home: Home) -> Iterator[Transaction]:
    """One transaction on the home's database, beside a server that may be running. Raises GatewayError."""
    from crocevia.storage.database import immediate

    ensure_store(home)
    with immediate(home.database) as tx:
        yield tx
