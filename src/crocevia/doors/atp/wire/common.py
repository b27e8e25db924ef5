"""What several resources share."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from crocevia.core.declared import FieldError
from crocevia.core.errors import Reason

# Visible on one line: names travel in logs, lists and headers. `$` alone would let a last line break through.
Name = Annotated[
    str, Meta(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$(?!\n)")
]
Description = Annotated[str, Meta(max_length=65535)] | None


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A body. What the contract does not close may carry more; it is ignored."""


class Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body that the contract closes."""


def moment(seconds: float) -> datetime:
    """Unix seconds as the wire's date-time."""
    return datetime.fromtimestamp(seconds, UTC)


def moment_or_none(seconds: float | None) -> datetime | None:
    """As `moment`, None for None."""
    return None if seconds is None else moment(seconds)


def one_form(text: str) -> str:
    """A name in the one form in which names are compared: what looks the same is the same."""
    return unicodedata.normalize("NFC", text)


def changes(body: msgspec.Struct) -> dict[str, Any]:
    """The fields that a body has."""
    return {name: value for name in body.__struct_fields__ if (value := getattr(body, name)) is not UNSET}


def require_one(body: msgspec.Struct) -> None:
    """Raises FieldError if an update has no field."""
    if not changes(body):
        raise FieldError("body", Reason.CHANGE_EMPTY)


def refuse_given(body: msgspec.Struct, *names: str) -> None:
    """Raises FieldError if a body has one of these fields: they are not the caller's to choose."""
    for name in names:
        if getattr(body, name) is not UNSET:
            raise FieldError(name, Reason.FIELD_NOT_YOURS)
