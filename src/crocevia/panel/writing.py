"""Every write of the panel: the same validation as `crocevia apply`, the audit line and the new revision at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from crocevia.core.declared import Problem, Refused
from crocevia.core.errors import Code, GatewayError, Reason, say
from crocevia.panel.web import PageRequest
from crocevia.runtime.control import audit, removal
from crocevia.runtime.control.apply import Applied, apply_in, load_state
from crocevia.runtime.control.declarations import Spec, patch_of, place_of
from crocevia.storage.database import Transaction
from crocevia.storage.home import engine_keys, write_engine_keys

T = TypeVar("T")


async def change(request: PageRequest, work: Callable[[Transaction], T]) -> T:
    """Commit `work`, then serve the new catalogue. Raises what `work` raises, and GatewayError(UNAVAILABLE)."""
    stored = engine_keys(request.services.home)
    try:
        result = await request.services.database.write(work)
    except GatewayError as error:
        if error.code is Code.UNAVAILABLE and engine_keys(request.services.home) != stored:
            write_engine_keys(request.services.home, stored)  # the file was written, the commit then failed
        raise
    await request.services.catalogue.refresh()
    return result


async def declare(request: PageRequest, table: str, name: str, entry: dict[str, Any], etag: str | None) -> Applied:
    """Create (`etag` None) or change one declared entry. etag: of the value that the form was filled from.

    Raises Refused, also if the entry has changed since, and GatewayError(NOT_FOUND).
    """
    patch = patch_of(table, entry)

    def work(tx: Transaction) -> Applied:
        before = getattr(load_state(tx), table).get(name)
        _check_etag(table, name, before, etag)
        declaration = patch.over({})  # what the form says is the whole value
        applied = apply_in(tx, request.services.home, declaration, check_engine=request.services.check_engine)
        after = getattr(declaration, table)[0]
        changes: audit.Changes = dict(audit.differences(before, after))
        if declaration.secret(table, name) is not None:
            changes["secret"] = (None, None)
        audit.note(tx, request.actor, "created" if before is None else "changed", table, name, changes)
        return applied

    return await change(request, work)


async def remove(request: PageRequest, table: str, name: str) -> None:
    """Remove an entry. Raises GatewayError NOT_FOUND, or CONFLICT with what needs it."""

    def work(tx: Transaction) -> None:
        before = removal.remove(tx, table, name)
        audit.note(tx, request.actor, "removed", table, name, audit.differences(before, None))

    await change(request, work)


async def note(request: PageRequest, action: str, kind: str, name: str, changes: audit.Changes | None = None) -> None:
    """Add a line to the audit list for something already done. Raises GatewayError(UNAVAILABLE)."""
    await request.services.database.write(lambda tx: audit.note(tx, request.actor, action, kind, name, changes))


async def load(request: PageRequest, table: str) -> dict[str, Any]:
    """The declared values of `table`, by name."""
    found: dict[str, Any] = await request.services.database.read(lambda tx: getattr(load_state(tx), table))
    return found


async def find(request: PageRequest, table: str, name: str) -> Any:
    """One declared value. Raises GatewayError(NOT_FOUND)."""
    spec = (await load(request, table)).get(name)
    if spec is None:
        raise GatewayError(Reason.NOT_FOUND)
    return spec


def etag_of(spec: Spec | None) -> str:
    """A short digest of the value; empty for None."""
    return "" if spec is None else hashlib.sha256(msgspec.json.encode(spec)).hexdigest()[:16]


def _check_etag(table: str, name: str, before: Spec | None, etag: str | None) -> None:
    key = "encode" if table == "recipes" else "name"
    if etag is None and before is not None:
        raise Refused([Problem(f"{place_of(table, name)}.{key}", say(Reason.NAME_TAKEN))])
    if etag is not None and before is None:
        raise GatewayError(Reason.NOT_FOUND)
    if etag is not None and etag_of(before) != etag:
        raise Refused([Problem(place_of(table, name), say(Reason.CHANGED_MEANWHILE))])
