"""`POST /v1/responses/compact`: a conversation made short by the model that leads it."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from crocevia.asgi.answers import reply
from crocevia.asgi.hangup import watching
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.core.messages import TextPart, UserMessage
from crocevia.doors.responses import head, plan, resource, wire
from crocevia.doors.responses.items import Sealed, seal
from crocevia.doors.responses.plan import Desk
from crocevia.doors.responses.requests import body_of
from crocevia.runtime.gateway import Call, Cut

_ORDER: Final = (
    "Summarise the conversation so far for whoever continues it: facts, decisions, names, numbers, open questions and "
    "the results of tools. Write only the summary."
)


async def compact(desk: Desk, scope: Scope, receive: Receive, send: Send) -> None:
    """Raises GatewayError."""
    asked = head.read(scope)
    operator = await desk.operators.authenticate(asked.approach)
    body = await body_of(desk, asked, receive)
    given = plan.read(body)
    request = msgspec.structs.replace(given, tools=None, tool_choice=None, text=None, stream=False, store=False)
    made = await plan.make(desk, operator, asked, request, len(body))
    draft = msgspec.structs.replace(
        made.draft,
        encode="compact",
        messages=(*made.draft.messages, UserMessage(parts=(TextPart(text=_ORDER),))),
    )
    call = desk.gateway.open_model(operator.user_id, made.model, draft)
    with watching(receive, lambda: call.interrupt(Cut.CLIENT_GONE)):
        await _answer(call, send)


async def _answer(call: Call, send: Send) -> None:
    async with call:
        answer = await call.answer()
        if not answer.text.strip():
            raise GatewayError(Reason.UPSTREAM_FAILED)
        sealed = seal(Sealed(summary=answer.text))
        told = wire.Compacted(
            id=new_id("resp"),
            created_at=int(time.time()),
            output=[wire.CompactionItem(id=new_id("cmp"), encrypted_content=sealed)],
            usage=resource.counted(answer.usage),
        )
        call.bytes_out = await reply(send, 200, json.encode(told), [])
