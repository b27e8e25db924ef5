"""What can be done with an answer that was kept: read, followed again, deleted, cancelled, looked into."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from crocevia.asgi.fields import read_query
from crocevia.asgi.http import EventResponse, Response
from crocevia.asgi.stream import EventStream
from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.responses import items, queries, wire
from crocevia.doors.responses.caller import Request
from crocevia.doors.responses.frames import CLOSING, DONE, parsed, sse
from crocevia.doors.responses.replay import replayed
from crocevia.doors.responses.run import UNFINISHED, Background
from crocevia.doors.responses.services import Services
from crocevia.runtime.answers_store import StoredResponse


async def get(services: Services, background: Background, request: Request) -> Response | EventResponse:
    """The answer; with `stream` its events, and those to come if it is still being made."""
    subject, response_id = request.caller.operator.subject, request.params["response_id"]
    stored = await services.responses.find(subject, response_id)
    query = read_query(request, queries.Retrieval)
    job = background.find(subject, response_id)
    if not query.stream:
        return Response(200, _shown(stored, job is not None or response_id in services.responses.running))
    start = 0 if query.starting_after is None else query.starting_after + 1
    if job is not None:
        return background.follow(job, start, request)
    return EventResponse(partial(_replay, stored, start), headers=CLOSING)


async def _replay(stored: StoredResponse, start: int, stream: EventStream) -> None:
    if stored.events is not None:
        frames = parsed(stored.events)
    else:
        frames = replayed(msgspec.json.decode(_shown(stored, False), type=wire.Resource))
    # Whoever heard more of it in another process is told how it ended at least.
    await stream.end(sse(frames[min(start, len(frames) - 1) :]) + DONE)


async def delete(services: Services, background: Background, request: Request) -> Response:
    """Forget it; one that is still being made ends."""
    subject, response_id = request.caller.operator.subject, request.params["response_id"]
    await services.responses.delete(subject, response_id)
    job = background.find(subject, response_id)
    if job is not None:
        await background.cancel(job)
    return Response(200, {"id": response_id, "object": "response", "deleted": True})


async def cancel(services: Services, background: Background, request: Request) -> Response:
    """End the run."""
    subject, response_id = request.caller.operator.subject, request.params["response_id"]
    stored = await services.responses.find(subject, response_id)
    job = background.find(subject, response_id)
    if job is not None:
        await background.cancel(job)
        stored = await services.responses.find(subject, response_id)
    elif not msgspec.json.decode(stored.resource, type=wire.Resource).background:
        raise GatewayError(Reason.CANCEL_FOREGROUND)
    return Response(200, _shown(stored, False))


async def input_items(services: Services, request: Request) -> Response:
    """The items of the request, newest first unless asked otherwise, with ids of their own."""
    stored = await services.responses.find(request.caller.operator.subject, request.params["response_id"])
    return Response(200, _page(stored, read_query(request, queries.Listing)))


def _shown(stored: StoredResponse, running: bool) -> bytes:
    """The answer; one that nobody is making any more, and nobody will go on with, has failed."""
    if stored.status not in UNFINISHED or running or stored.chat is not None:
        return json.encode(msgspec.json.decode(stored.resource, type=wire.Resource))
    told = msgspec.json.decode(stored.resource, type=wire.Resource)
    fault = wire.Fault(code="server_error", message="The server was restarted before this answer was complete.")
    return json.encode(msgspec.structs.replace(told, status="failed", error=fault))


def _page(stored: StoredResponse, query: queries.Listing) -> dict[str, Any]:
    bare = stored.id.removeprefix("resp_")
    rows = [_listed(item, f"item_{bare}_{index}") for index, item in enumerate(items.decoded(stored.input))]
    if query.order == "desc":
        rows.reverse()
    after = query.after
    if after is not None:
        ids = [row["id"] for row in rows]
        if after not in ids:
            raise GatewayError(Reason.CURSOR_UNKNOWN, param="after")
        rows = rows[ids.index(after) + 1 :]
    page = rows[: query.limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(rows) > query.limit,
    }


def _listed(item: wire.Item, made_up: str) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(item)
    shown.setdefault("type", "message" if item.role else "item_reference")
    shown["id"] = item.id or made_up
    if shown["type"] == "message":
        shown["status"] = item.status or "completed"
        if isinstance(item.content, str):
            kind = "output_text" if item.role == "assistant" else "input_text"
            shown["content"] = [{"type": kind, "text": item.content}]
    return shown
