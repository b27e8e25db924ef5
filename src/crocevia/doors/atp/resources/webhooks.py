"""What providers of pictures tell us."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec

from crocevia.asgi import fields
from crocevia.asgi.http import Operation, Response
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.wire.common import Body
from crocevia.runtime.control import provider_callbacks as webhooks


class ProviderWebhookPayload(Body, frozen=True, kw_only=True):
    """Any object: each provider has its own."""


class WebhookOk(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"


_BODY = 1024 * 1024
_BODY_SECONDS = 60.0


async def receive(request: Request) -> Response:
    request.caller.control.throttle.admit("providers", "webhooks", webhooks.PER_MINUTE)
    body = await request.read(_BODY, _BODY_SECONDS)
    lines = request.scope["headers"]
    times = Counter(name for name, _ in lines)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in lines if times[name] == 1}
    webhooks.receive(request.caller.control, request.params["provider"], headers, body)
    if body:
        fields.read(body, ProviderWebhookPayload)
    return Response(200, WebhookOk())


OPERATIONS = (
    Operation(
        "handleProviderWebhook",
        "POST",
        "/webhooks/providers/{provider}",
        receive,
        "For providers, not for clients: what is signed by the provider is acknowledged.",
        result=WebhookOk,
        public=True,
        refuses=(401, 405, 429),
    ),
)
