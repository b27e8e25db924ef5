"""What a provider's refusal means: from its status or from the error inside a stream to one `GatewayError`.

Only the type and code words of an error body are read, against the tables here; its sentences go nowhere.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

import msgspec

from crocevia.core.calls import Sampling
from crocevia.core.errors import Code, GatewayError, Reason

SAMPLING: Final = Sampling.__struct_fields__

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""Whatever decoding what a provider sent may raise, of what was taken in as it came, too."""


class _Meaning(msgspec.Struct, frozen=True):
    reason: Reason
    retryable: bool = False


_UNSUPPORTED: Final = ("unsupported_parameter", "unknown_parameter")
# Of the value that this caller gave, or of nobody knows what: no news of the parameter.
_VALUE_REFUSED: Final = (None, "", "unsupported_value")
_BEGINS: Final = re.compile(
    rf"[`'\"]?({'|'.join(SAMPLING)})[`'\"]?:?(?: is| are)?(?: \w+){{0,3}} (?:deprecated|unsupported|not supported)\b"
)
_OVERLOADED = _Meaning(Reason.UPSTREAM_OVERLOADED, retryable=True)
_BROKEN = _Meaning(Reason.UPSTREAM_FAILED, retryable=True)
_SLOW = _Meaning(Reason.UPSTREAM_TIMEOUT, retryable=True)
_REJECTED = _Meaning(Reason.UPSTREAM_REJECTED)
_KEY = _Meaning(Reason.UPSTREAM_KEY_REFUSED)
_QUOTA = _Meaning(Reason.UPSTREAM_QUOTA)
_REFUSED = _Meaning(Reason.REFUSED)
_UNKNOWN = _Meaning(Reason.UPSTREAM_FAILED)

_WORDS: dict[str, _Meaning] = {
    "overloaded_error": _OVERLOADED,
    "overloaded": _OVERLOADED,
    "rate_limit_error": _OVERLOADED,
    "rate_limit_exceeded": _OVERLOADED,
    "server_is_overloaded": _OVERLOADED,
    "slow_down": _OVERLOADED,
    "too_many_requests": _OVERLOADED,
    "service_unavailable": _OVERLOADED,
    "api_error": _BROKEN,
    "server_error": _BROKEN,
    "internal_error": _BROKEN,
    "internal_server_error": _BROKEN,
    "InternalServerError": _BROKEN,
    "network_error": _BROKEN,
    "insufficient_system_resource": _OVERLOADED,
    "timeout": _SLOW,
    "timeout_error": _SLOW,
    "invalid_request_error": _REJECTED,
    "invalid_prompt": _REJECTED,
    "not_found_error": _REJECTED,
    "request_too_large": _REJECTED,
    "context_length_exceeded": _REJECTED,
    "model_not_found": _REJECTED,
    "unsupported_parameter": _REJECTED,
    "unsupported_value": _REJECTED,
    "BadRequestError": _REJECTED,
    "authentication_error": _KEY,
    "permission_error": _KEY,
    "invalid_api_key": _KEY,
    "billing_error": _QUOTA,
    "insufficient_quota": _QUOTA,
    "content_policy_violation": _REFUSED,
    "content_filter": _REFUSED,
}

_STATUSES: dict[int, _Meaning] = {
    401: _KEY,
    402: _QUOTA,
    403: _KEY,
    408: _SLOW,
    429: _OVERLOADED,
    500: _BROKEN,
    502: _BROKEN,
    503: _OVERLOADED,
    504: _BROKEN,
    529: _OVERLOADED,
}


class ParameterRefused(GatewayError):
    """The call may go on without the sampling parameter `param`. always: the model takes it from nobody."""

    def __init__(self, param: str, *, always: bool) -> None:
        super().__init__(Reason.UPSTREAM_REJECTED, param=param)
        self.always = always


def from_status(status: int, body: bytes, retry_after: int | None) -> GatewayError:
    """The failure that an answer with a status other than 2xx means."""
    error = _error_of(body)
    word, code = _words(error)
    # The code is the most exact (a 429 may be an empty account); the type is the least (OpenAI calls a bad key an
    # invalid request), so the status goes before it.
    meaning = (
        _WORDS.get(code)
        or _STATUSES.get(status)
        or _WORDS.get(word)
        or (_REJECTED if 400 <= status < 500 else _UNKNOWN)
    )
    failure = _failure(meaning, retry_after)
    refused = _parameter(error) if failure.code is Code.UPSTREAM_REJECTED else None
    return refused or failure


def from_stream(error: Any) -> GatewayError:
    """The failure that an error object inside a 200 means."""
    word, code = _words(error)
    status = int(code) if code.isascii() and code.isdigit() else 0
    return _failure(_WORDS.get(code) or _STATUSES.get(status) or _WORDS.get(word) or _UNKNOWN, None)


def malformed() -> GatewayError:
    """The provider's answer is not what its protocol says."""
    return GatewayError(Reason.UPSTREAM_MALFORMED)


def cut() -> GatewayError:
    """The stream ended without saying that it was the end."""
    return GatewayError(Reason.UPSTREAM_CUT)


def bad_arguments(tool: str) -> NoReturn:
    raise GatewayError(Reason.TOOL_ARGUMENTS_MALFORMED, tool=tool)


def _failure(meaning: _Meaning, retry_after: int | None) -> GatewayError:
    return GatewayError(meaning.reason, retry_after=retry_after, retryable=meaning.retryable)


def _parameter(error: Any) -> ParameterRefused | None:
    """The sampling parameter of ours that a refusal is about.

    A value out of range says nothing of the parameter, and a caller's own words may be quoted anywhere in a refusal:
    only the field that names the parameter counts, or a sentence that begins with it.
    """
    if not isinstance(error, dict):
        return None
    named, code, words = error.get("param"), error.get("code"), error.get("message")
    if named in SAMPLING and code in _UNSUPPORTED:
        return ParameterRefused(str(named), always=True)
    if isinstance(words, str) and (found := _BEGINS.match(words)) is not None:
        return ParameterRefused(found[1], always=True)
    if named in SAMPLING and code in _VALUE_REFUSED:
        return ParameterRefused(str(named), always=False)
    return None


def _error_of(body: bytes) -> Any:
    try:
        whole = msgspec.json.decode(body)
    except UNREADABLE:
        return None
    return whole.get("error", whole) if isinstance(whole, dict) else None


def _words(error: Any) -> tuple[str, str]:
    if not isinstance(error, dict):
        return "", ""
    word, code = error.get("type"), error.get("code")
    return word if isinstance(word, str) else "", str(code) if isinstance(code, str | int) else ""
