"""Chats on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from crocevia.doors.atp.wire.common import Request, moment
from crocevia.runtime.control import chats as control


class ChatCreateRequest(Request, frozen=True, kw_only=True):
    team_id: Annotated[str, Meta(max_length=31)]


class ChatQuery(Request, frozen=True, kw_only=True):
    """before: the id of the last chat of the page before."""

    before: Annotated[str, Meta(max_length=64)] = control.LAST
    per_page: Annotated[int, Meta(ge=1, le=control.PAGE)] = control.PAGE


class Chat(msgspec.Struct, frozen=True):
    id: str
    workspace_id: str
    user_id: str
    team_id: str
    title: str | None
    created_at: datetime
    updated_at: datetime


class ChatLinks(msgspec.Struct, frozen=True, kw_only=True):
    """next: where the list goes on, None at its end."""

    next: str | None


class ChatCollection(msgspec.Struct, frozen=True, kw_only=True):
    data: list[Chat]
    links: ChatLinks


def chat(value: control.Chat) -> Chat:
    """As the wire shows it."""
    created = moment(value.created_at)
    updated = created if value.updated_at == value.created_at else moment(value.updated_at)
    return Chat(value.id, value.workspace_id, value.user_id, value.team_id, value.title, created, updated)
