"""What can go wrong, by class and by `code`. Messages name no key, token, signed URL, argument or output.

Applications decide on the class and on `code`; `message` and `details` are the server's words, kept as attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from .secrets import scrub

if TYPE_CHECKING:
    from .tools import ToolOutcome


class Envelope(TypedDict, total=False):
    """What every error may be given of the answer it stands for."""

    http_status: int | None
    type: str | None
    code: str | None
    details: object
    request_id: str | None
    retry_after: float | None


class EnvaiError(Exception):
    """Base of every error of the SDK. `str()` says what went wrong and where, `repr()` only the codes."""

    def __init__(
        self,
        message: str = "",
        *,
        http_status: int | None = None,
        type: str | None = None,
        code: str | None = None,
        details: object = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(scrub(message))
        self.http_status = http_status
        """Status of the answer, None if there was none."""
        self.type = type
        """With `code`, `message` and `details`: the error envelope."""
        self.code = code
        self.message = message
        self.details = details
        self.request_id = request_id
        """What the infrastructure called the request."""
        self.retry_after = retry_after
        """Seconds the server asked to wait."""
        self.where: str | None = None
        """The operation that failed, as `createAgent POST /agents`."""
        self.chat_id: str | None = None
        """With `turn_id` and `last_seq`: where a stream or a turn stood; what to go on from."""
        self.turn_id: str | None = None
        self.last_seq: int | None = None
        self.tool_outcomes: tuple[ToolOutcome, ...] = ()
        """What became of the client-tool calls of a turn that was waited for, until it failed."""

    def locate(self, *, chat_id: str, turn_id: str | None, last_seq: int) -> None:
        """Say where a stream stood, unless the error knows better."""
        self.chat_id = self.chat_id or chat_id
        self.turn_id = self.turn_id or turn_id
        self.last_seq = last_seq if self.last_seq is None else self.last_seq

    def __str__(self) -> str:
        text = super().__str__() or type_name(self)
        named = [str(part) for part in (self.http_status, self.type, self.code) if part is not None]
        parts = [f"{text} ({' '.join(named)})" if named else text, *fields_of(self.details)]
        place = {"in": self.where, "chat": self.chat_id, "turn": self.turn_id, "after event": self.last_seq}
        place |= {"request": self.request_id}
        told = ", ".join(f"{name} {value}" for name, value in place.items() if value is not None)
        return scrub("; ".join(parts) + (f" [{told}]" if told else ""))

    def __repr__(self) -> str:
        shown = {"http_status": self.http_status, "code": self.code, "request_id": self.request_id}
        inside = ", ".join(f"{name}={value!r}" for name, value in shown.items() if value is not None)
        return f"{type_name(self)}({inside})"


def type_name(error: EnvaiError) -> str:
    return error.__class__.__name__


def fields_of(details: object) -> list[str]:
    """Which fields a validation error is about. What it says of them may quote them: that stays in `details`."""
    names = [str(name)[:80] for name in details] if isinstance(details, dict) else []
    return [f"fields: {', '.join(names[:8])}"] if names else []


class AuthenticationError(EnvaiError):
    """401."""


class AccessDeniedError(EnvaiError):
    """403."""


class NotFoundError(EnvaiError):
    """404."""


class ConflictError(EnvaiError):
    """409, for example `turn_in_progress`, `tool_already_resolved`, `tool_timed_out`."""


class ValidationError(EnvaiError):
    """422."""


class RateLimitError(EnvaiError):
    """429."""


class ProviderError(EnvaiError):
    """A model or image provider failed."""


class FileError(EnvaiError):
    """The workspace file service refused."""


class ServerError(EnvaiError):
    """5xx, for example `gateway_draining`."""


class CompatibilityError(EnvaiError):
    """The two sides do not speak the same contract version, or the answer does not acknowledge it."""


class CursorExpiredError(ConflictError):
    """The log no longer continues from the cursor. `reason`: epoch_changed, trimmed, ahead or sequence_reset.

    Nothing is resumed silently: start from zero as a new epoch (`on_expired="restart"`) or reconcile.
    """

    def __init__(
        self, message: str = "", *, reason: str, last_seq: int, epoch: str | None, **given: Unpack[Envelope]
    ) -> None:
        given.setdefault("code", "cursor_expired")
        super().__init__(message or f"cursor {last_seq} is no longer valid: {reason}", **given)
        self.reason = reason
        self.last_seq = last_seq
        self.epoch = epoch


class TransportError(EnvaiError):
    """No usable answer. `sent` is False only when the request provably never left; otherwise its effect is unknown."""

    def __init__(self, message: str, *, sent: bool = True, **given: Unpack[Envelope]) -> None:
        super().__init__(message, **given)
        self.sent = sent


class RequestTimeoutError(TransportError):
    """The connection, the answer or the helper's own `timeout` took too long."""


class CancelledError(EnvaiError):
    """The caller's CancelToken was cancelled."""


class StreamInterruptedError(TransportError):
    """The stream ended and could not be resumed within the reconnection policy. `last_seq` is where to go on."""

    def __init__(self, message: str, *, last_seq: int, **given: Unpack[Envelope]) -> None:
        super().__init__(message, **given)
        self.last_seq = last_seq


class StreamInUseError(EnvaiError):
    """One stream has one reader: it was read from two places at once."""


class ProtocolError(EnvaiError):
    """The other side broke the protocol. `raw` is what it sent, untouched and never printed."""

    def __init__(self, message: str, *, raw: object = None, **given: Unpack[Envelope]) -> None:
        super().__init__(message, **given)
        self.raw = raw


class InvalidResponseError(ProtocolError):
    """A successful answer whose body is not what the contract says."""


class InvalidFrameError(ProtocolError):
    """A server-sent event that is not UTF-8 JSON, or exceeds the frame bound."""


class InvalidEventError(ProtocolError):
    """A known event whose envelope or payload breaks the schema."""


class UnsupportedVersionError(ProtocolError):
    """An envelope version this stream may not carry."""


class ReplayGapError(ProtocolError):
    """Events `missing_from`..`missing_to` are gone: the one replay did not bring them back."""

    def __init__(self, *, chat_id: str, missing_from: int, missing_to: int, last_seq: int) -> None:
        super().__init__(f"events {missing_from}..{missing_to} are missing and the replay did not bring them back")
        self.chat_id = chat_id
        self.missing_from = missing_from
        self.missing_to = missing_to
        self.last_seq = last_seq


class RedirectRefusedError(ProtocolError):
    """A redirect that would carry credentials to another origin, or that a mutation may not follow."""


class SignatureError(ProtocolError):
    """A client-tool request or webhook whose signature does not verify. Nothing was executed."""


class ToolStateError(ProtocolError):
    """A call id came back with other contents than the ledger recorded. Nothing was executed."""


class UnsafePathError(EnvaiError):
    """A local or workspace path that could escape, or that the workspace refuses."""


BY_STATUS: dict[int, type[EnvaiError]] = {
    401: AuthenticationError,
    403: AccessDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: ValidationError,
    426: CompatibilityError,
    429: RateLimitError,
}
INCOMPATIBLE = {"contract_upgrade_required", "unsupported_contract_version"}


def error_class(status: int, type: str | None, code: str | None) -> type[EnvaiError]:
    """The class for an error answer: codes about the contract, then the status, then the type."""
    if code in INCOMPATIBLE:
        return CompatibilityError
    if status in BY_STATUS:
        return BY_STATUS[status]
    if type == "provider_error":
        return ProviderError
    if type is not None and type.startswith(("file_", "invalid_path")):
        return FileError
    return ServerError if status >= 500 else EnvaiError
