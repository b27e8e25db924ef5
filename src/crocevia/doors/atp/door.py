"""The door: one table of operations, and the way every request takes through it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qsl

from crocevia.asgi.body import ClientGone
from crocevia.asgi.types import Application, Headers, Receive, Scope, Send
from crocevia.core.errors import GatewayError, MethodNotAllowed, Reason
from crocevia.core.ids import new_id
from crocevia.doors.atp import auth, fields, negotiation
from crocevia.doors.atp.body import discard, read_whole
from crocevia.doors.atp.errors import expected, refuse
from crocevia.doors.atp.operation import Answer, Live, Operation, Request, Rule, Stream, encoded
from crocevia.doors.atp.resources import TABLE
from crocevia.doors.atp.resources.document import describing
from crocevia.doors.atp.routing import Found, Router, names
from crocevia.doors.atp.streaming import send_live, send_stream
from crocevia.runtime.control.context import Control

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_MAX_QUERY: Final = 64  # parameters


class AtpDoor:
    """Envai's API as a plain ASGI application: everything below /api/v1, and /.well-known/jwks.json.

    table: what is at which address.
    """

    def __init__(self, control: Control, table: Sequence[Operation] = TABLE) -> None:
        self._control = control
        self.table = (*table, *describing(table))
        self._router = Router(self.table)

    def routes(self) -> dict[str, Application]:
        """By address; one that ends with a slash takes everything below it."""
        return dict.fromkeys(("/api/v1/", "/.well-known/"), self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refusals come in this order: address, method, key, version, limits, body, content."""
        request_id = _request_id(scope)
        found = self._router.find(scope)
        operation = found.operations.get(scope["method"]) if found is not None else None
        if operation is None:
            answer = refuse(_no_operation(found))
            await send_answer(send, answer, _always(request_id))
            return
        assert found is not None
        request = Request(self._control, operation, scope, receive, request_id)
        request.params = dict(zip(names(operation), found.values, strict=True))
        try:
            reply = await self._reply(request)
            if isinstance(reply, Stream):
                await send_stream(request, reply, send, _common(request))
                return
            if isinstance(reply, Live):
                await send_live(request, reply, send, _common(request))
                return
        except ClientGone:
            return
        except Exception as error:
            reply = refuse(expected(error, operation.id))
            with suppress(ClientGone):
                await discard(request)
        await send_answer(send, reply, _common(request))

    async def _reply(self, request: Request) -> Answer | Stream | Live:
        operation = request.operation
        if not operation.public:
            request.principal = await auth.authenticate(self._control.keys, request.headers(b"authorization"))
        request.version = negotiation.select(operation.rule, request.headers(negotiation.HEADER))
        if operation.per_minute is not None and request.principal is not None:
            self._control.throttle.admit(request.user_id, operation.id, operation.per_minute)
        request.query = _query(request.scope)
        if operation.body is not None:
            request.body = fields.read(await read_whole(request, operation.max_body), operation.body)
        return await operation.handler(request)


async def send_answer(send: Send, answer: Answer, common: Headers) -> None:
    """One whole answer."""
    body = encoded(answer.content)
    headers = [*answer.headers, *common]
    if answer.status != 204:
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _common(request: Request) -> Headers:
    """What every answer of an operation carries."""
    return (*_always(request.id), *negotiation.acknowledgement(request.operation.rule, request.version))


def _always(request_id: str) -> Headers:
    return (
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", request_id.encode()),
    )


def _request_id(scope: Scope) -> str:
    """The caller's own, if it may travel in a header; else a new one."""
    given = [value for name, value in scope["headers"] if name == b"x-request-id"]
    if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]):
        return str(given[0], "ascii")
    return new_id("req")


def _no_operation(found: Found | None) -> GatewayError:
    if found is None:
        return GatewayError(Reason.NOT_FOUND)
    return MethodNotAllowed(", ".join(sorted(found.operations)))


def _query(scope: Scope) -> dict[str, list[str]]:
    """Every value by name. Raises GatewayError(INVALID_REQUEST) for what is not UTF-8 or too much."""
    raw = scope.get("query_string", b"")
    if not raw:
        return {}
    found: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_QUERY, encoding="utf-8"
        )
    except ValueError:
        raise GatewayError(Reason.QUERY_MALFORMED) from None
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


__all__ = ["AtpDoor", "Rule", "send_answer"]
