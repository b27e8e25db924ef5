"""`POST /v1/responses/compact`: a conversation made short by the model that leads it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from crocevia.asgi.http import Response
from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.core.messages import TextPart, UserMessage
from crocevia.doors.responses import plan, resource, wire
from crocevia.doors.responses.caller import Request
from crocevia.doors.responses.items import Sealed
from crocevia.doors.responses.services import Services
from crocevia.runtime.gateway import Call, Cut

_ORDER: Final = (
    "Summarise the conversation so far for whoever continues it: facts, decisions, names, numbers, open questions and "
    "the results of tools. Write only the summary."
)


async def compact(services: Services, request: Request) -> Response:
    """A long input as a short one."""
    given: wire.Request = request.take()
    asked = msgspec.structs.replace(given, tools=None, tool_choice=None, text=None, stream=False, store=False)
    made = await plan.make(services, request.caller, asked, request.size, speaks=False)
    draft = msgspec.structs.replace(
        made.draft,
        encode="compact",
        messages=(*made.draft.messages, UserMessage(parts=(TextPart(text=_ORDER),))),
    )
    call = services.gateway.open_model(request.caller.operator.user_id, made.model, draft)
    with request.on_disconnect(lambda: call.interrupt(Cut.CLIENT_GONE)):
        return Response(200, await _answer(call, partial(services.sealer.seal, owner=request.caller.operator.user_id)))


async def _answer(call: Call, seal: Callable[[bytes], str]) -> bytes:
    async with call:
        answer = await call.answer()
        if not answer.text.strip():
            raise GatewayError(Reason.UPSTREAM_FAILED)
        sealed = seal(json.encode(Sealed(summary=answer.text)))
        body = json.encode(
            wire.Compacted(
                id=new_id("resp"),
                created_at=int(time.time()),
                output=[wire.CompactionItem(id=new_id("cmp"), encrypted_content=sealed)],
                usage=resource.counted(answer.usage),
            )
        )
        call.bytes_out = len(body)
    return body
