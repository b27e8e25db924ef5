"""Every code as this door says it, and the answer that carries it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crocevia.asgi import answers
from crocevia.asgi.types import Header, Send
from crocevia.core import json
from crocevia.core.errors import Code, GatewayError
from crocevia.core.texts import render

# Status, type, code. The types are those of the specification; the codes are what OpenAI's clients look for.
TABLE: Final[Mapping[Code, tuple[int, str, str | None]]] = {
    Code.INVALID_REQUEST: (400, "invalid_request_error", None),
    Code.UNSUPPORTED: (400, "invalid_request_error", "unsupported_parameter"),
    Code.UPSTREAM_REJECTED: (400, "invalid_request_error", "upstream_rejected"),
    Code.REFUSED: (400, "invalid_request_error", "content_filter"),
    Code.UNAUTHENTICATED: (401, "unauthorized", None),
    Code.BUDGET_EXHAUSTED: (402, "insufficient_quota", "insufficient_quota"),
    Code.FORBIDDEN: (403, "forbidden", None),
    Code.AGENT_NOT_ENABLED: (403, "forbidden", None),
    Code.DOCUMENTS_NOT_ENABLED: (403, "forbidden", None),
    Code.IMAGES_NOT_ENABLED: (403, "forbidden", None),
    Code.NOT_FOUND: (404, "invalid_request_error", "not_found"),
    Code.METHOD_NOT_ALLOWED: (405, "invalid_request_error", "method_not_allowed"),
    Code.CONFLICT: (409, "invalid_request_error", "conflict"),
    Code.TOO_LARGE: (413, "invalid_request_error", "request_too_large"),
    Code.RATE_LIMITED: (429, "rate_limit_error", "rate_limit_exceeded"),
    Code.CONCURRENCY_LIMITED: (429, "rate_limit_error", "rate_limit_exceeded"),
    Code.INTERNAL: (500, "api_error", "server_error"),
    Code.UPSTREAM_FAILED: (502, "api_error", "upstream_failed"),
    Code.UPSTREAM_OVERLOADED: (503, "api_error", "upstream_overloaded"),
    Code.MODEL_UNPRICED: (503, "api_error", "model_unpriced"),
    Code.UNAVAILABLE: (503, "api_error", "unavailable"),
    Code.DRAINING: (503, "api_error", "draining"),
    Code.UPSTREAM_TIMEOUT: (504, "api_error", "upstream_timeout"),
}
# Sentences that clients know under a code of their own.
_CODES: Final = {
    "previous_response_missing": "previous_response_not_found",
    "model_invalid": "model_not_found",
    "model_unknown": "model_not_found",
    "agent_unknown": "model_not_found",
    "field_needed": "missing_required_parameter",
    "connection_over": "websocket_connection_limit_reached",
    "context_exceeded": "context_length_exceeded",
    "choice_unmet": "tool_choice_unmet",
}
_PLAIN: Final = {
    # What the specification spells to the letter, without param and code.
    "unauthenticated": {"message": "Unauthorized", "type": "unauthorized"},
    "auth_attempts": {
        "message": "Too many failed authentication attempts. Please try again later.",
        "type": "rate_limited",
    },
}
_ALWAYS_SAYS_WHEN: Final = frozenset({429, 503})


def failure(error: GatewayError) -> dict[str, Any]:
    """The object under `error`."""
    key = error.message.reason
    if key in _PLAIN:
        return _PLAIN[key]
    message = render(error.message, "en")
    if key == "proxy_attribution":
        return {"message": message, "type": "proxy_attribution_required"}
    _, kind, code = TABLE[error.code]
    return {"message": message, "type": kind, "param": error.param, "code": _CODES.get(key, code)}


def body(error: GatewayError) -> dict[str, Any]:
    """The whole body. A missing scope has a form of its own."""
    if error.message.reason != "scope_missing":
        return {"error": failure(error)}
    scope = error.message.details["scope"]
    details = {"code": "MISSING_SCOPE", "missingScope": scope, "requiredScopes": [scope]}
    return {"ok": False, "error": {"type": "forbidden", "message": f"missing scope: {scope}", "details": details}}


def expected(error: Exception) -> GatewayError:
    """The error that the caller is told about."""
    return answers.expected(error, "responses")


def status(error: GatewayError) -> int:
    return 404 if error.message.reason == "model_unknown" else TABLE[error.code][0]


async def refuse(send: Send, error: GatewayError) -> int:
    """Answer with the error as JSON; the bytes sent."""
    code = status(error)
    headers: list[Header] = []
    if error.retry_after is not None or code in _ALWAYS_SAYS_WHEN:
        headers.append((b"retry-after", b"%d" % max(1, error.retry_after or 1)))
    if error.code is Code.METHOD_NOT_ALLOWED:
        headers.append((b"allow", str(error.message.details["allowed"]).encode()))
    if error.code is Code.TOO_LARGE:
        headers.append((b"connection", b"close"))
    return await answers.reply(send, code, json.encode(body(error)), headers)
