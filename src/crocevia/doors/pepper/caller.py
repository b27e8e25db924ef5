"""Who asks: the headers of a request that say so, and what every answer tells of the project's limits."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TypeAlias

import msgspec

from crocevia.asgi import http
from crocevia.asgi.types import Header, Headers
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.pepper import wire
from crocevia.runtime.gateway import Gateway, ProjectSpec

_NANO = 1_000_000_000


class AnswerRule(Enum):
    """What the authenticator must know of an operation."""

    LIMITED = "limited"  # its answers, refusals too, tell what is left of the project's limits


Identify: TypeAlias = Callable[[str], ProjectSpec]
"""The project of a name, for whoever asks. Raises GatewayError."""


class ProjectCaller(msgspec.Struct, frozen=True):
    """Somebody who may come in; the body may still name another project than theirs."""

    named: str
    """The project as the header names it, or empty."""
    identify: Identify


Request: TypeAlias = http.Request[ProjectCaller | None]


async def authenticate_key(gateway: Gateway, request: Request) -> ProjectCaller | None:
    """Whoever holds a project's key; None where nobody has to. Raises GatewayError(UNAUTHENTICATED) without one."""
    if request.operation.public:
        return None
    key = (request.header(wire.KEY_HEADER) or b"").strip()
    if not key:
        raise GatewayError(Reason.UNAUTHENTICATED)
    owner = gateway.authenticate(key)
    if request.operation.rule is AnswerRule.LIMITED:
        request.answer_headers = partial(_limit_headers, gateway, owner)
    return ProjectCaller(project_header(request), partial(_if_named, owner))


def _if_named(owner: ProjectSpec, name: str) -> ProjectSpec:
    if name != owner.name:
        raise GatewayError(Reason.UNAUTHENTICATED)
    return owner


def project_header(request: Request) -> str:
    """The project that the header names, or empty."""
    value = request.header(wire.PROJECT_HEADER) or b""
    try:
        return value.decode().strip()
    except UnicodeDecodeError:
        return value.decode("latin-1").strip()


def identify(gateway: Gateway, request: Request, named: str | None) -> ProjectSpec:
    """The project of a request, whose limits its answer then tells. Raises GatewayError(UNAUTHENTICATED)."""
    assert request.caller is not None
    request.answer_headers = tuple
    project = request.caller.identify(named or "")
    request.answer_headers = partial(_limit_headers, gateway, project)
    return project


def _limit_headers(gateway: Gateway, project: ProjectSpec) -> Headers:
    """Remaining budget, remaining calls, and when there is more again, at this moment.

    A limit that the project does not have has no headers.
    """
    if project.daily_budget_usd is None and project.hourly_limit is None:
        return ()
    left = gateway.remaining(project)
    found: list[Header] = []
    if left.budget is not None:
        found += [
            (b"x-pepper-budget-limit", _dollars(left.budget)),
            (b"x-pepper-budget-remaining", _dollars(left.budget_left or 0)),
            (b"x-pepper-budget-reset", b"%d" % (left.budget_reset or 0)),
        ]
    if left.hourly is not None:
        found += [
            (b"x-pepper-limit", b"%d" % left.hourly),
            (b"x-pepper-limit-remaining", b"%d" % (left.hourly_left or 0)),
            (b"x-pepper-limit-reset", b"%d" % (left.hourly_reset or 0)),
        ]
    return found


def _dollars(amount: int) -> bytes:
    """Nano-dollars as USD with six decimals, rounded down: never more than there is."""
    micro = amount // 1000
    return b"%d.%06d" % divmod(micro, _NANO // 1000)
