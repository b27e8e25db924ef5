"""What can be done with an answer that was kept: read, followed again, deleted, cancelled, looked into."""

from __future__ import annotations

from typing import Any

import msgspec

from crocevia.asgi.answers import reply
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.responses import head, items, wire
from crocevia.doors.responses.background import UNFINISHED, Background
from crocevia.doors.responses.frames import DONE, heard, sse
from crocevia.doors.responses.plan import WRITE, Desk
from crocevia.doors.responses.replay import replayed
from crocevia.doors.responses.requests import answering, check_method, number, query
from crocevia.runtime.answers_store import StoredResponse

_READ = "operator.read"


async def serve(desk: Desk, background: Background, rest: str, scope: Scope, receive: Receive, send: Send) -> None:
    """`/v1/responses/{id}` and what is below it. Raises GatewayError."""
    response_id, _, action = rest.partition("/")
    method = check_method(scope, *_METHODS.get(action, ("GET", "DELETE")))
    if action not in _METHODS:
        raise GatewayError(Reason.NOT_FOUND)
    operator = await desk.operators.authenticate(head.read(scope).approach)
    operator.grant.demand(_READ if method == "GET" else WRITE)
    subject = operator.subject
    if action == "input_items":
        await _reply(send, _page(await desk.responses.find(subject, response_id), query(scope)))
    elif action == "cancel":
        await _cancel(desk, background, subject, response_id, send)
    elif method == "DELETE":
        await desk.responses.delete(subject, response_id)
        await _reply(send, {"id": response_id, "object": "response", "deleted": True})
    else:
        await _get(desk, background, subject, response_id, scope, receive, send)


_METHODS = {"": ("GET", "DELETE"), "cancel": ("POST",), "input_items": ("GET",)}


async def _get(
    desk: Desk,
    background: Background,
    subject: str,
    response_id: str,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    stored = await desk.responses.find(subject, response_id)
    params = query(scope)
    if params.get("stream") not in ("true", "1"):
        running = background.find(subject, response_id) is not None or response_id in desk.responses.running
        await reply(send, 200, _shown(stored, running), [])
        return
    start = number(params, "starting_after", -1, -1, 1 << 31) + 1
    job = background.find(subject, response_id)
    if job is not None:
        await background.follow(job, start, receive, send)
        return
    async with answering(send, desk.ping_seconds) as stream:
        if stored.events is not None:
            frames = heard(stored.events)
        else:
            frames = replayed(msgspec.json.decode(_shown(stored, False), type=wire.Resource))
        # Whoever heard more of it in another process is told how it ended at least.
        await stream.end(sse(frames[min(start, len(frames) - 1) :]) + DONE)


def _shown(stored: StoredResponse, running: bool) -> bytes:
    """The answer; one that nobody is making any more, and nobody will go on with, has failed."""
    if stored.status not in UNFINISHED or running or stored.chat is not None:
        return stored.resource
    told = msgspec.json.decode(stored.resource, type=wire.Resource)
    fault = wire.Fault(code="server_error", message="The server was restarted before this answer was complete.")
    return json.encode(msgspec.structs.replace(told, status="failed", error=fault))


async def _cancel(desk: Desk, background: Background, subject: str, response_id: str, send: Send) -> None:
    stored = await desk.responses.find(subject, response_id)
    job = background.find(subject, response_id)
    if job is not None:
        await background.cancel(job)
        stored = await desk.responses.find(subject, response_id)
    elif not msgspec.json.decode(stored.resource, type=wire.Resource).background:
        raise GatewayError(Reason.CANCEL_FOREGROUND)
    await reply(send, 200, _shown(stored, False), [])


def _page(stored: StoredResponse, params: dict[str, str]) -> dict[str, Any]:
    """The items of the request, newest first unless asked otherwise, with ids of their own."""
    limit = number(params, "limit", 20, 1, 100)
    order = params.get("order", "desc")
    if order not in ("asc", "desc"):
        raise GatewayError(Reason.ORDER_UNKNOWN, param="order")
    bare = stored.id.removeprefix("resp_")
    rows = [_listed(item, f"item_{bare}_{index}") for index, item in enumerate(items.decoded(stored.input))]
    if order == "desc":
        rows.reverse()
    after = params.get("after")
    if after is not None:
        ids = [row["id"] for row in rows]
        if after not in ids:
            raise GatewayError(Reason.CURSOR_UNKNOWN, param="after")
        rows = rows[ids.index(after) + 1 :]
    page = rows[:limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(rows) > limit,
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


async def _reply(send: Send, content: object) -> None:
    await reply(send, 200, json.encode(content), [])
