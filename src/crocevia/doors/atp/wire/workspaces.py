"""Workspaces on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from crocevia.core.declared import FieldError
from crocevia.core.errors import Reason
from crocevia.doors.atp.wire.common import Name, Request, moment, require_one
from crocevia.runtime.control import workspaces as control

# The contract lets metadata be a list and then refuses every list; an empty one is how PHP spells an empty object.
Metadata = dict[str, Any] | list[Any]


class WorkspaceCreateRequest(Request, frozen=True, kw_only=True):
    name: Name
    metadata: Metadata | UnsetType = UNSET

    def __post_init__(self) -> None:
        _check(self.metadata)


class WorkspaceUpdateRequest(Request, frozen=True, kw_only=True):
    name: Name | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET

    def __post_init__(self) -> None:
        _check(self.metadata)
        require_one(self)


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    user_id: str
    name: str
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime


def workspace(value: control.Workspace) -> Workspace:
    """As the wire shows it."""
    return Workspace(
        id=value.id,
        user_id=value.user_id,
        name=value.name,
        metadata=value.metadata,
        created_at=moment(value.created_at),
        updated_at=moment(value.updated_at),
    )


def _check(metadata: Metadata | UnsetType) -> None:
    if isinstance(metadata, list) and metadata:
        raise FieldError("metadata", Reason.FIELD_NOT_OBJECT)
