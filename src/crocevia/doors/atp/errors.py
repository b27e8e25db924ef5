"""Every code as this door says it, and the answer that carries it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from crocevia.asgi import answers
from crocevia.asgi.types import Header, Headers
from crocevia.core.declared import Refused
from crocevia.core.errors import Code, GatewayError, Reason, say
from crocevia.core.texts import render
from crocevia.doors.atp.negotiation import REQUIRED
from crocevia.doors.atp.operation import Answer

# Status and type. A code without a row of its own in the contract takes the nearest one.
TABLE: Final[Mapping[Code, tuple[int, str]]] = {
    Code.INVALID_REQUEST: (422, "validation_error"),
    Code.UNSUPPORTED: (422, "validation_error"),
    Code.REFUSED: (422, "validation_error"),
    Code.UNAUTHENTICATED: (401, "unauthenticated"),
    Code.FORBIDDEN: (403, "access_denied"),
    Code.AGENT_NOT_ENABLED: (403, "access_denied"),
    Code.DOCUMENTS_NOT_ENABLED: (403, "access_denied"),
    Code.IMAGES_NOT_ENABLED: (403, "access_denied"),
    Code.NOT_FOUND: (404, "not_found"),
    Code.METHOD_NOT_ALLOWED: (405, "invalid_request"),
    Code.CONFLICT: (409, "conflict"),
    Code.TOO_LARGE: (413, "invalid_request"),
    Code.RATE_LIMITED: (429, "too_many_requests"),
    Code.CONCURRENCY_LIMITED: (429, "too_many_requests"),
    Code.BUDGET_EXHAUSTED: (429, "too_many_requests"),
    Code.UPSTREAM_FAILED: (502, "provider_error"),
    Code.UPSTREAM_OVERLOADED: (502, "provider_error"),
    Code.UPSTREAM_TIMEOUT: (502, "provider_error"),
    Code.UPSTREAM_REJECTED: (502, "provider_error"),
    Code.MODEL_UNPRICED: (503, "server_error"),
    Code.UNAVAILABLE: (503, "server_error"),
    Code.DRAINING: (503, "server_error"),
    Code.INTERNAL: (500, "server_error"),
}

# Sentences that the contract gives a row of their own: status, type, and the sentence's key is the `code`.
NAMED: Final[Mapping[str, tuple[int, str]]] = {
    "unsupported_contract_version": (400, "invalid_request"),
    "contract_upgrade_required": (426, "conflict"),
    "after_invalid": (400, "invalid_request"),
    "cursor_expired": (409, "conflict"),
    "turn_in_progress": (409, "conflict"),
    "no_turn_in_progress": (409, "conflict"),
    "idempotency_conflict": (409, "conflict"),
    "team_unavailable": (409, "conflict"),
    "tool_already_resolved": (409, "conflict"),
    "tool_timed_out": (409, "conflict"),
    "tool_claimed": (409, "conflict"),
    "approval_already_resolved": (409, "conflict"),
    "approval_expired": (409, "conflict"),
    "invalid_fork_destination": (422, "validation_error"),
    "invalid_orchestrator_context": (422, "validation_error"),
    "agent_not_running": (422, "validation_error"),
    "context_unavailable": (503, "server_error"),
    "attachment_retry_not_permitted": (409, "conflict"),
    "webhook_none": (405, "provider_error"),
    "webhook_signature": (401, "provider_error"),
    "path_wrong": (422, "invalid_path"),
    "file_not_found": (404, "file_not_found"),
    "file_is_folder": (409, "file_conflict"),
    "file_not_folder": (409, "file_conflict"),
    "file_in_the_way": (409, "file_conflict"),
    "folder_not_empty": (409, "file_conflict"),
    "folder_protected": (409, "file_conflict"),
    "file_too_large": (422, "file_too_large"),
    "pdf_too_large": (422, "file_too_large"),
    "file_not_text": (422, "file_service_error"),
    "document_unset": (422, "file_service_error"),
    "files_unavailable": (503, "file_service_unavailable"),
    "files_busy": (503, "file_service_unavailable"),
}
# Those of them whose arguments tell a program what to do next.
_TELLING: Final = frozenset({"cursor_expired", "turn_in_progress"})

# Codes that say more than their type does.
_CODES: Final[Mapping[Code, str]] = {Code.DRAINING: "gateway_draining"}

_INDEX: Final = re.compile(r"\[(\d+)\]")


def refuse(error: GatewayError) -> Answer:
    """The answer that carries the error."""
    status, kind = NAMED.get(error.message.reason) or TABLE[error.code]
    body: dict[str, Any] = {"type": kind, "message": render(error.message, "en")}
    if status != 429:  # the contract closes that one
        code = error.message.reason if error.message.reason in NAMED else _CODES.get(error.code)
        if code is not None:
            body["code"] = code
        body["details"] = _details(error)
        if body["details"] and status == 422:
            body["message"] = render(say(Reason.DATA_INVALID), "en")
    return Answer(status, {"error": body}, _headers(error, status))


def expected(error: Exception, operation: str) -> GatewayError:
    """The error that the caller is told about."""
    return answers.expected(error, "atp", operation=operation)


def _details(error: GatewayError) -> dict[str, Any] | None:
    """Sentences by field, fields spelled as the contract does: `members.0.role`; or the arguments of the sentence."""
    if error.message.reason in _TELLING:
        return dict(error.message.details)
    found: dict[str, list[str]] = {}
    if isinstance(error, Refused):
        for problem in error.problems:
            found.setdefault(_INDEX.sub(r".\1", problem.place), []).append(render(problem.message, "en"))
    elif error.param is not None:
        found[_INDEX.sub(r".\1", error.param)] = [render(error.message, "en")]
    return found or None


def _headers(error: GatewayError, status: int) -> Headers:
    headers: list[Header] = []
    if error.retry_after is not None or status in (429, 503):
        headers.append((b"retry-after", b"%d" % max(1, error.retry_after or 1)))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 405:
        headers.append((b"allow", str(error.message.details.get("allowed", "")).encode()))
    if status == 413:
        headers.append((b"connection", b"close"))
    if status == 426:
        headers.append((REQUIRED, b"3"))
    return headers
