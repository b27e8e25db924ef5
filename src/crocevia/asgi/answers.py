"""What is said of a failure: the door's own words, with the headers that every refusal needs."""

from __future__ import annotations

import sys
from typing import Final

from crocevia.asgi.http import Door, Response
from crocevia.asgi.types import Header
from crocevia.core.errors import GatewayError, Reason

_SAYS_WHEN: Final = frozenset({429, 503})


def refuse(door: Door, error: GatewayError) -> Response:
    """The answer that carries the error."""
    refusal = door.refuse(error)
    status = refusal.status
    headers: list[Header] = list(refusal.headers)
    if error.retry_after is not None or status in _SAYS_WHEN:
        headers.append((b"retry-after", b"%d" % max(1, error.retry_after or 1)))
    if status == 401:
        headers.append((b"www-authenticate", door.challenge))
    if status == 413:
        headers.append((b"connection", b"close"))
    return refusal._replace(headers=headers)


def expected(error: Exception, door: str, **where: str) -> GatewayError:
    """The error that the caller is told about; an internal one is logged here, without its message."""
    if isinstance(error, GatewayError):
        return error
    import structlog  # a tenth of a second that most servers never need

    structlog.get_logger(f"crocevia.{door}").error(
        "request failed", **where, error=type(error).__name__, at=_place(error)
    )
    return GatewayError(Reason.INTERNAL)


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "?"
    module = trace.tb_frame.f_globals.get("__name__", "?")
    return f"{module}:{trace.tb_lineno}" if module in sys.modules else "?"
