"""The audit list: who changed what. Written in the transaction of the change, so neither exists without the other."""

from __future__ import annotations

import time
from typing import Any, Final, TypeAlias

import msgspec

from crocevia.core.ids import new_id
from crocevia.storage import panel
from crocevia.storage.database import Transaction

LAST: Final = "~"  # after every id
_LONGEST: Final = 200  # characters of a value that are kept


Changes: TypeAlias = dict[str, tuple[str | None, str | None]]
"""Field to its value before and after, as short texts; None: there was none."""


class Actor(msgspec.Struct, frozen=True):
    """Who made a change, and from where."""

    account: str
    address: str


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    id: str
    at: float
    """Unix seconds."""
    account: str
    address: str
    action: str
    kind: str
    name: str
    changes: Changes = {}


def note(
    tx: Transaction,
    actor: Actor,
    action: str,
    kind: str,
    name: str,
    changes: Changes | None = None,
) -> None:
    """Add a line for what `tx` does. No value of it may be a secret."""
    panel.add_audit(
        tx,
        id=new_id("aud"),
        at=time.time(),
        account=actor.account,
        address=actor.address,
        action=action,
        kind=kind,
        name=name,
        changes=msgspec.json.encode(changes or {}).decode(),
    )


def entries(tx: Transaction, *, before: str = LAST, most: int = 50, kind: str | None = None) -> list[AuditEntry]:
    """Lines older than the one called `before`, newest first."""
    return [
        AuditEntry(
            id=row.id,
            at=row.at,
            account=row.account,
            address=row.address,
            action=row.action,
            kind=row.kind,
            name=row.name,
            changes=msgspec.json.decode(row.changes, type=dict[str, tuple[str | None, str | None]]),
        )
        for row in panel.audit_page(tx, before, most, kind)
    ]


def differences(before: Any, after: Any) -> dict[str, tuple[str | None, str | None]]:
    """The fields in which two declared values differ (None: there is no such value)."""
    old, new = _fields(before), _fields(after)
    return {
        name: (_short(old.get(name)), _short(new.get(name)))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    }


def _fields(value: Any) -> dict[str, Any]:
    return {} if value is None else dict(msgspec.to_builtins(value))


def _short(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
