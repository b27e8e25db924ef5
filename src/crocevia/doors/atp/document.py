"""The OpenAPI document of this door, from its own table and structs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from crocevia.asgi import document as openapi
from crocevia.doors.atp.operation import Operation, Rule
from crocevia.doors.atp.routing import PREFIX, full

ADDRESS: Final = f"{PREFIX}/openapi.json"


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """details: sentences by field."""

    type: str
    message: str
    code: str | None = None
    details: dict[str, Any] | None = None


class Error(msgspec.Struct, frozen=True, kw_only=True):
    error: ErrorDetail


_ABOUT: Final = openapi.About(
    title="Crocevia: Envai API",
    about="The control plane and the Agent Team Protocol, contract 3 and version 2 at one address.",
    failure=Error,
    security={"bearer": {"type": "http", "scheme": "bearer"}},
)
_TOKEN: Final = {"type": "string", "pattern": "^[!-~]{1,255}$"}


def document(table: Iterable[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1. Operations of the contract that this server only refuses are left out."""
    return openapi.document(_ABOUT, [_route(operation) for operation in table if not operation.absent])


def page(content: dict[str, Any]) -> bytes:
    """The same to read."""
    return openapi.page(content, ADDRESS)


def _route(operation: Operation) -> openapi.Route:
    return openapi.Route(
        id=operation.id,
        method=operation.method,
        path=full(operation.path),
        about=operation.about,
        body=operation.body,
        result=operation.result,
        wrapped=not operation.bare,
        produces=operation.produces,
        upload=operation.upload,
        status=operation.status,
        refuses=_refusals(operation),
        public=operation.public,
        headers=_headers(operation),
        query=operation.query,
    )


def _refusals(operation: Operation) -> tuple[int, ...]:
    """What the operation may answer besides success, lowest first."""
    negotiated = operation.rule is not Rule.PLAIN
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
    found: dict[str, tuple[dict[str, Any], bool]] = {name: (_TOKEN, True) for name in operation.headers}
    if operation.rule is not Rule.PLAIN:
        needed = operation.rule is Rule.CONTRACT_3
        found["X-Envai-Contract-Version"] = ({"type": "string", "enum": ["3"] if needed else ["2", "3"]}, needed)
    return found
