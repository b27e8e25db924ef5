"""What providers of pictures tell us."""

from __future__ import annotations

from collections import Counter

from crocevia.doors.atp import fields
from crocevia.doors.atp.body import read_whole
from crocevia.doors.atp.operation import Answer, Operation, Request
from crocevia.doors.atp.wire import webhooks as wire
from crocevia.runtime.control import provider_callbacks as webhooks

_BODY = 1024 * 1024


async def receive(request: Request) -> Answer:
    request.control.throttle.admit("providers", "webhooks", webhooks.PER_MINUTE)
    body = await read_whole(request, _BODY)
    lines = request.scope["headers"]
    times = Counter(name for name, _ in lines)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in lines if times[name] == 1}
    webhooks.receive(request.control, request.params["provider"], headers, body)
    if body:
        fields.read(body, wire.ProviderWebhookPayload)
    return Answer(200, wire.WebhookOk())


OPERATIONS = (
    Operation(
        "handleProviderWebhook",
        "POST",
        "/webhooks/providers/{provider}",
        receive,
        "For providers, not for clients: what is signed by the provider is acknowledged.",
        result=wire.WebhookOk,
        public=True,
        bare=True,
        refuses=(401, 405, 429),
    ),
)
