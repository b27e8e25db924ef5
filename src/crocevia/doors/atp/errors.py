"""Every code as this door says it, and the answer that carries it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from crocevia.asgi.http import Response
from crocevia.core.declared import Refused
from crocevia.core.detailed_errors import CursorExpired, TurnInProgress
from crocevia.core.errors import Code, GatewayError, Reason, say
from crocevia.core.texts import render
from crocevia.doors.atp.negotiation import REQUIRED

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

# Reasons that the contract gives a row of their own: status, type, code.
NAMED: Final[Mapping[Reason, tuple[int, str, str]]] = {
    Reason.UNSUPPORTED_CONTRACT_VERSION: (400, "invalid_request", "unsupported_contract_version"),
    Reason.CONTRACT_UPGRADE_REQUIRED: (426, "conflict", "contract_upgrade_required"),
    Reason.AFTER_INVALID: (400, "invalid_request", "after_invalid"),
    Reason.CURSOR_EXPIRED: (409, "conflict", "cursor_expired"),
    Reason.TURN_IN_PROGRESS: (409, "conflict", "turn_in_progress"),
    Reason.NO_TURN_IN_PROGRESS: (409, "conflict", "no_turn_in_progress"),
    Reason.IDEMPOTENCY_CONFLICT: (409, "conflict", "idempotency_conflict"),
    Reason.AGENT_UNREADABLE: (409, "conflict", "agent_unreadable"),
    Reason.TEAM_UNAVAILABLE: (409, "conflict", "team_unavailable"),
    Reason.TOOL_ALREADY_RESOLVED: (409, "conflict", "tool_already_resolved"),
    Reason.TOOL_TIMED_OUT: (409, "conflict", "tool_timed_out"),
    Reason.TOOL_CLAIMED: (409, "conflict", "tool_claimed"),
    Reason.APPROVAL_ALREADY_RESOLVED: (409, "conflict", "approval_already_resolved"),
    Reason.APPROVAL_EXPIRED: (409, "conflict", "approval_expired"),
    Reason.INVALID_FORK_DESTINATION: (422, "validation_error", "invalid_fork_destination"),
    Reason.INVALID_ORCHESTRATOR_CONTEXT: (422, "validation_error", "invalid_orchestrator_context"),
    Reason.AGENT_NOT_RUNNING: (422, "validation_error", "agent_not_running"),
    Reason.CONTEXT_UNAVAILABLE: (503, "server_error", "context_unavailable"),
    Reason.ATTACHMENT_RETRY_NOT_PERMITTED: (409, "conflict", "attachment_retry_not_permitted"),
    Reason.WEBHOOK_NONE: (405, "provider_error", "webhook_none"),
    Reason.WEBHOOK_SIGNATURE: (401, "provider_error", "webhook_signature"),
    Reason.PATH_WRONG: (422, "invalid_path", "path_wrong"),
    Reason.FILE_NOT_FOUND: (404, "file_not_found", "file_not_found"),
    Reason.FILE_IS_FOLDER: (409, "file_conflict", "file_is_folder"),
    Reason.FILE_NOT_FOLDER: (409, "file_conflict", "file_not_folder"),
    Reason.FILE_IN_THE_WAY: (409, "file_conflict", "file_in_the_way"),
    Reason.FOLDER_NOT_EMPTY: (409, "file_conflict", "folder_not_empty"),
    Reason.FOLDER_PROTECTED: (409, "file_conflict", "folder_protected"),
    Reason.FILE_TOO_LARGE: (422, "file_too_large", "file_too_large"),
    Reason.PDF_TOO_LARGE: (422, "file_too_large", "pdf_too_large"),
    Reason.FILE_NOT_TEXT: (422, "file_service_error", "file_not_text"),
    Reason.DOCUMENT_UNSET: (422, "file_service_error", "document_unset"),
    Reason.PDF_NOT_INSTALLED: (422, "file_service_error", "pdf_not_installed"),
    Reason.FILES_UNAVAILABLE: (503, "file_service_unavailable", "files_unavailable"),
    Reason.FILES_BUSY: (503, "file_service_unavailable", "files_busy"),
}

# Codes that say more than their type does.
_CODES: Final[Mapping[Code, str]] = {Code.DRAINING: "gateway_draining"}

_INDEX: Final = re.compile(r"\[(\d+)\]")


def row_of(error: GatewayError) -> tuple[int, str, str | None]:
    """Status, type and code: the row of its reason, else that of its code."""
    return NAMED.get(error.reason) or (*TABLE[error.code], _CODES.get(error.code))


def refuse(error: GatewayError) -> Response:
    """The answer that carries the error."""
    status, kind, code = row_of(error)
    body: dict[str, Any] = {"type": kind, "message": render(error.message, "en")}
    if status != 429:  # the contract closes that one
        if code is not None:
            body["code"] = code
        body["details"] = _details(error)
        if body["details"] and status == 422:
            body["message"] = render(say(Reason.DATA_INVALID), "en")
    return Response(status, {"error": body}, ((REQUIRED, b"3"),) if status == 426 else ())


def _details(error: GatewayError) -> dict[str, Any] | None:
    """Sentences by field, fields spelled as the contract does: `members.0.role`; or what a program does next."""
    if isinstance(error, CursorExpired):
        held = {"epoch": error.epoch, "first_seq": error.first_seq, "last_seq": error.last_seq}
        return {"reason": error.why, **held}
    if isinstance(error, TurnInProgress):
        return {"turn_id": error.turn_id, "waiting_for": error.waiting_for}
    found: dict[str, list[str]] = {}
    if isinstance(error, Refused):
        for problem in error.problems:
            found.setdefault(_INDEX.sub(r".\1", problem.place), []).append(render(problem.message, "en"))
    elif error.param is not None:
        found[_INDEX.sub(r".\1", error.param)] = [render(error.message, "en")]
    return found or None
