"""Completions of a chat, read only: turns write them."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from crocevia.asgi.fields import read_query
from crocevia.asgi.http import Operation, Response, data
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.atp.caller import Request, Rule
from crocevia.doors.atp.wire import completions as wire
from crocevia.runtime.control import completions


async def listed(request: Request) -> Response:
    query = read_query(request, wire.CompletionQuery)
    wanted = completions.Filter(
        status=query.status,
        model=query.model_orchestrator,
        started_from=_seconds(query.started_from),
        started_to=_seconds(query.started_to),
    )
    params = request.params
    page = await completions.page(
        request.caller.control,
        request.caller.user_id,
        params["workspace_id"],
        params["chat_id"],
        wanted,
        query.page,
        query.per_page,
    )
    return Response(200, _collection(request, query, page))


async def get(request: Request) -> Response:
    params = request.params
    found = await completions.get(
        request.caller.control,
        request.caller.user_id,
        params["workspace_id"],
        params["chat_id"],
        params["completion_id"],
    )
    return data(_shown(request, found))


def _collection(request: Request, query: wire.CompletionQuery, page: completions.Page) -> wire.CompletionCollection:
    last = max(1, -(-page.total // query.per_page))
    before = (query.page - 1) * query.per_page
    count = len(page.items)
    kept = [(name, values[0]) for name, values in request.query.items() if name != "page"]

    def link(number: int) -> str:
        return f"{request.scope['path']}?{urlencode([*kept, ('page', str(number))])}"

    return wire.CompletionCollection(
        data=[_shown(request, item) for item in page.items],
        links=wire.Links(
            first=link(1),
            last=link(last),
            prev=link(min(query.page - 1, last)) if query.page > 1 else None,
            next=link(query.page + 1) if query.page < last else None,
        ),
        meta=wire.PageMeta(
            current_page=query.page,
            first_item=before + 1 if count else None,
            last_page=last,
            per_page=query.per_page,
            to=before + count if count else None,
            total=page.total,
        ),
    )


def _shown(request: Request, value: completions.Completion) -> wire.Completion:
    assert request.caller.version is not None
    shown = wire.completion(value, request.caller.version.number)
    if shown is None:
        raise GatewayError(Reason.CONTRACT_UPGRADE_REQUIRED)
    return shown


def _seconds(moment: datetime | None) -> float | None:
    if moment is None:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


OPERATIONS = (
    Operation(
        "listCompletions",
        "GET",
        "/workspaces/{workspace_id}/chats/{chat_id}/completions",
        listed,
        "The completions of a chat, newest first. Version 2 has no word for an unknown cost: such a page is 426 there.",
        result=wire.CompletionCollection,
        query=wire.CompletionQuery,
        rule=Rule.BOTH,
    ),
    Operation(
        "getCompletion",
        "GET",
        "/workspaces/{workspace_id}/chats/{chat_id}/completions/{completion_id}",
        get,
        "One completion; contract 3 shows its immutable terminal snapshot.",
        result=wire.Completion,
        wrapped=True,
        rule=Rule.BOTH,
    ),
)
