"""Providers' webhooks on the wire."""

from __future__ import annotations

from typing import Literal

import msgspec

from crocevia.doors.atp.wire.common import Request


class ProviderWebhookPayload(Request, frozen=True, kw_only=True):
    """Any object: each provider has its own."""


class WebhookOk(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"
