"""The one error class and the closed set of codes.

A `GatewayError` is raised where the fault is known and mapped once per door (`Code -> status, wire type`).
Codes are also the keys of the translated texts in `core/locale/`. Nothing an upstream said, no key and no
prompt may enter a message: arguments of a `Message` are ours (names, indexes, limits).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Code(StrEnum):
    """Every way a call can fail. Doors own the status and the wire word; `core/locale/` owns the sentence."""

    INVALID_REQUEST = "invalid_request"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    AGENT_NOT_ENABLED = "agent_not_enabled"
    DOCUMENTS_NOT_ENABLED = "documents_not_enabled"
    IMAGES_NOT_ENABLED = "images_not_enabled"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"
    CONCURRENCY_LIMITED = "concurrency_limited"
    BUDGET_EXHAUSTED = "budget_exhausted"
    MODEL_UNPRICED = "model_unpriced"
    UNSUPPORTED = "unsupported"
    REFUSED = "refused"
    UPSTREAM_FAILED = "upstream_failed"
    UPSTREAM_OVERLOADED = "upstream_overloaded"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    UPSTREAM_REJECTED = "upstream_rejected"
    UNAVAILABLE = "unavailable"
    DRAINING = "draining"
    INTERNAL = "internal"


class Message(msgspec.Struct, frozen=True):
    """A sentence to be said in the caller's language: a key of `core/locale/*.toml` and its arguments.

    An argument may itself be a sentence (`part_refused` says which part, and why).
    """

    key: str
    args: dict[str, str | int | float | Message] = msgspec.field(default_factory=dict)


def say(key: str, **args: str | int | float | Message) -> Message:
    """Shorthand for a `Message`: `say("tool_result_missing", index=3, id="c1")`."""
    return Message(key, args)


class GatewayError(Exception):
    """A failure that a caller is told about.

    code: one of `Code`.
    message: what to say; by default the sentence named like the code.
    param: the field of the request that is wrong, as a path (`messages[2].content`).
    retry_after: whole seconds >= 1 until the next try can succeed.
    retryable: the same call may succeed a moment later (set by engines; the retry loop reads it).
    """

    def __init__(
        self,
        code: Code,
        message: Message | None = None,
        *,
        param: str | None = None,
        retry_after: int | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(code.value)
        self.code = code
        self.message = message if message is not None else Message(code.value)
        self.param = param
        self.retry_after = retry_after
        self.retryable = retryable

    def __repr__(self) -> str:
        return f"GatewayError({self.code.value}, {self.message.key!r}, param={self.param!r})"
