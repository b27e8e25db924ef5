"""Chats of a workspace."""

from __future__ import annotations

from urllib.parse import urlencode

from crocevia.asgi.fields import read_query
from crocevia.asgi.http import Operation, Response, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire import chats as wire
from crocevia.runtime.control import chats


async def create(request: Request) -> Response:
    made = await chats.create(
        request.caller.control, request.caller.user_id, request.params["workspace_id"], request.body.team_id
    )
    return data(wire.chat(made), 201)


async def listed(request: Request) -> Response:
    query = read_query(request, wire.ChatQuery)
    workspace_id = request.params["workspace_id"]
    # One more than asked for tells whether there is a next page.
    found = await chats.listed(
        request.caller.control, request.caller.user_id, workspace_id, query.before, query.per_page + 1
    )
    page = found[: query.per_page]
    following = urlencode({"before": page[-1].id, "per_page": query.per_page}) if len(found) > len(page) else None
    links = wire.ChatLinks(next=following and f"{request.scope['path']}?{following}")
    return Response(200, wire.ChatCollection(data=[wire.chat(chat) for chat in page], links=links))


async def get(request: Request) -> Response:
    found = await chats.get(
        request.caller.control, request.caller.user_id, request.params["workspace_id"], request.params["chat_id"]
    )
    return data(wire.chat(found))


OPERATIONS = (
    Operation(
        "createChat",
        "POST",
        "/workspaces/{workspace_id}/chats",
        create,
        "Create a chat with one of the caller's teams.",
        body=wire.ChatCreateRequest,
        result=wire.Chat,
        wrapped=True,
        status=201,
    ),
    Operation(
        "listChats",
        "GET",
        "/workspaces/{workspace_id}/chats",
        listed,
        "The newest 1,000 chats of a workspace, newest first; `links.next` leads to the ones before them.",
        result=wire.ChatCollection,
        query=wire.ChatQuery,
    ),
    Operation(
        "getChat",
        "GET",
        "/workspaces/{workspace_id}/chats/{chat_id}",
        get,
        "One chat.",
        result=wire.Chat,
        wrapped=True,
    ),
)
