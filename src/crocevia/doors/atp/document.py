"""The OpenAPI document of this door, from its own table and structs."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from crocevia.asgi.document import About
from crocevia.asgi.http import Operation
from crocevia.doors.atp.caller import VersionRule

PREFIX: Final = "/api/v1"
ADDRESS: Final = f"{PREFIX}/openapi.json"
PAGE: Final = f"{PREFIX}/docs"


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """details: sentences by field."""

    type: str
    message: str
    code: str | None = None
    details: dict[str, Any] | None = None


class Error(msgspec.Struct, frozen=True, kw_only=True):
    error: ErrorDetail


ABOUT: Final = About(
    title="Crocevia: Envai API",
    about="The control plane and the Agent Team Protocol, contract 3 and version 2 at one address.",
    failure=Error,
    security={"bearer": {"type": "http", "scheme": "bearer"}},
)


def described(operation: Operation) -> Operation:
    """A row with what all of its kind refuse and read."""
    return msgspec.structs.replace(operation, refuses=_refusals(operation), headers=_headers(operation))


def _refusals(operation: Operation) -> tuple[int, ...]:
    """What the operation may answer besides success, lowest first."""
    negotiated = operation.rule not in (None, VersionRule.PLAIN)
    writes = operation.method in ("POST", "PUT")
    tests = {
        400: negotiated,
        401: not operation.public,
        404: "{" in operation.path,
        413: writes,
        422: True,
        426: negotiated,
        429: operation.per_minute is not None,
        500: True,
        503: True,
    }
    return tuple(sorted({status for status, holds in tests.items() if holds} | set(operation.refuses)))


def _headers(operation: Operation) -> dict[str, tuple[dict[str, Any], bool]]:
    if operation.rule in (None, VersionRule.PLAIN):
        return operation.headers
    needed = operation.rule is VersionRule.CONTRACT_3
    version = {"type": "string", "enum": ["3"] if needed else ["2", "3"]}
    return operation.headers | {"X-Envai-Contract-Version": (version, needed)}
