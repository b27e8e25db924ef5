"""Every code as this door says it, and the answer that carries it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crocevia.asgi.http import Response
from crocevia.core.declared import Refused
from crocevia.core.detailed_errors import ScopeMissing
from crocevia.core.errors import Code, GatewayError, Reason
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
# Reasons that clients know under a code of their own.
_CODES: Final[Mapping[Reason, str]] = {
    Reason.PREVIOUS_RESPONSE_MISSING: "previous_response_not_found",
    Reason.MODEL_INVALID: "model_not_found",
    Reason.MODEL_UNKNOWN: "model_not_found",
    Reason.AGENT_UNKNOWN: "model_not_found",
    Reason.FIELD_NEEDED: "missing_required_parameter",
    Reason.CONNECTION_OVER: "websocket_connection_limit_reached",
    Reason.CONTEXT_EXCEEDED: "context_length_exceeded",
    Reason.CHOICE_UNMET: "tool_choice_unmet",
}
# Type and words that the specification spells to the letter, without param and code; None: our own sentence.
_PLAIN: Final[Mapping[Reason, tuple[str, str | None]]] = {
    Reason.UNAUTHENTICATED: ("unauthorized", "Unauthorized"),
    Reason.AUTH_ATTEMPTS: ("rate_limited", "Too many failed authentication attempts. Please try again later."),
    Reason.PROXY_ATTRIBUTION: ("proxy_attribution_required", None),
}


def failure(error: GatewayError) -> dict[str, Any]:
    """The object under `error`."""
    if error.reason in _PLAIN:
        kind, message = _PLAIN[error.reason]
        return {"message": message or render(error.message, "en"), "type": kind}
    _, kind, code = TABLE[error.code]
    code = _CODES.get(error.reason, code)
    sentence, param = error.message, error.param
    if isinstance(error, Refused):  # the first of its problems: there is room for one
        sentence, param = error.problems[0].message, error.problems[0].place
    return {"message": render(sentence, "en"), "type": kind, "param": param, "code": code}


def body(error: GatewayError) -> dict[str, Any]:
    """The whole body. A missing scope has a form of its own."""
    if not isinstance(error, ScopeMissing):
        return {"error": failure(error)}
    scope = error.scope
    details = {"code": "MISSING_SCOPE", "missingScope": scope, "requiredScopes": [scope]}
    return {"ok": False, "error": {"type": "forbidden", "message": f"missing scope: {scope}", "details": details}}


def status(error: GatewayError) -> int:
    """Of the answer."""
    return TABLE[error.code][0]


def refuse(error: GatewayError) -> Response:
    """The answer that carries the error."""
    return Response(status(error), body(error))
