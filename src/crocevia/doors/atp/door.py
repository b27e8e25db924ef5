"""The door: one table of operations below /api/v1, and who may ask for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from crocevia.asgi import fields
from crocevia.asgi.document import describing
from crocevia.asgi.http import Door, Operation
from crocevia.asgi.types import Headers
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.atp import negotiation
from crocevia.doors.atp.caller import Request, UserCaller, VersionRule
from crocevia.doors.atp.document import ABOUT, ADDRESS, PAGE, PREFIX, described
from crocevia.doors.atp.errors import refuse
from crocevia.doors.atp.resources import TABLE
from crocevia.runtime.control.api_keys import ApiKeys, Principal
from crocevia.runtime.control.context import Control

_BODY_SECONDS: Final = 60.0  # for the whole of a JSON body
_MAX_TOKEN: Final = 4096


def atp_door(control: Control, table: Sequence[Operation] = TABLE) -> Door:
    """Envai's API: everything below /api/v1, and /.well-known/jwks.json. table: paths are below /api/v1."""

    async def authenticate(request: Request) -> UserCaller:
        """Refusals come in this order: key, version, limits."""
        operation = request.operation
        rule: VersionRule = operation.rule or VersionRule.PLAIN
        request.answer_headers = lambda: negotiation.acknowledgement(rule, None)
        principal = None
        if not operation.public:
            principal = await bearer(control.keys, request.headers(b"authorization"))
            request.ended = lambda: control.keys.ended(principal)
        version = negotiation.select(rule, request.headers(negotiation.HEADER))
        request.answer_headers = lambda: negotiation.acknowledgement(rule, version)
        if operation.per_minute is not None and principal is not None:
            control.throttle.admit(principal.user_id, operation.id, operation.per_minute)
        return UserCaller(control, principal, version)

    rows = tuple(msgspec.structs.replace(row, path=full(row.path)) for row in table)
    return Door(
        name="atp",
        table=(*rows, *describing(ABOUT, map(described, rows), ADDRESS, PAGE)),
        prefixes=(PREFIX, "/.well-known"),
        authenticate=authenticate,
        about_absent=_acknowledged,
        refuse=refuse,
        decode=fields.read,
        body_seconds=_BODY_SECONDS,
    )


def _acknowledged(request: Request, operations: Collection[Operation]) -> Headers:
    """A method that is not there is refused in the version that the others of its address speak."""
    for operation in operations:
        rule: VersionRule = operation.rule or VersionRule.PLAIN
        version = None
        with suppress(GatewayError):
            version = negotiation.select(rule, request.headers(negotiation.HEADER))
        return negotiation.acknowledgement(rule, version)
    return ()


async def bearer(keys: ApiKeys, values: list[bytes]) -> Principal:
    """Who asks, by the values of the Authorization header. Raises GatewayError(UNAUTHENTICATED)."""
    if len(values) == 1:
        scheme, _, token = values[0].partition(b" ")
        token = token.strip()
        if scheme.lower() == b"bearer" and token and len(token) <= _MAX_TOKEN and token.isascii():
            return await keys.authenticate(token.decode("ascii"))
    raise GatewayError(Reason.API_KEY_INVALID)


def full(path: str) -> str:
    """A path of the table from the origin on."""
    return path if path.startswith(("/.well-known/", f"{PREFIX}/")) else PREFIX + path
