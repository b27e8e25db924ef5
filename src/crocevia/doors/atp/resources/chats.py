"""Chats of a workspace."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from crocevia.asgi.fields import read_query
from crocevia.asgi.http import Operation, Response, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire.common import Body, moment
from crocevia.runtime.control import chats as control


class ChatCreateRequest(Body, frozen=True, kw_only=True):
    team_id: Annotated[str, Meta(max_length=31)]


class ChatQuery(Body, frozen=True, kw_only=True):
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


async def create(request: Request) -> Response:
    made = await control.create(
        request.caller.control, request.caller.user_id, request.params["workspace_id"], request.body.team_id
    )
    return data(chat(made), 201)


async def listed(request: Request) -> Response:
    query = read_query(request, ChatQuery)
    workspace_id = request.params["workspace_id"]
    # One more than asked for tells whether there is a next page.
    found = await control.listed(
        request.caller.control, request.caller.user_id, workspace_id, query.before, query.per_page + 1
    )
    page = found[: query.per_page]
    following = urlencode({"before": page[-1].id, "per_page": query.per_page}) if len(found) > len(page) else None
    links = ChatLinks(next=following and f"{request.scope['path']}?{following}")
    return Response(200, ChatCollection(data=[chat(one) for one in page], links=links))


async def get(request: Request) -> Response:
    found = await control.get(
        request.caller.control, request.caller.user_id, request.params["workspace_id"], request.params["chat_id"]
    )
    return data(chat(found))


OPERATIONS = (
    Operation(
        "createChat",
        "POST",
        "/workspaces/{workspace_id}/chats",
        create,
        "Create a chat with one of the caller's teams.",
        body=ChatCreateRequest,
        result=Chat,
        wrapped=True,
        status=201,
    ),
    Operation(
        "listChats",
        "GET",
        "/workspaces/{workspace_id}/chats",
        listed,
        "The newest 1,000 chats of a workspace, newest first; `links.next` leads to the ones before them.",
        result=ChatCollection,
        query=ChatQuery,
    ),
    Operation(
        "getChat",
        "GET",
        "/workspaces/{workspace_id}/chats/{chat_id}",
        get,
        "One chat.",
        result=Chat,
        wrapped=True,
    ),
)
