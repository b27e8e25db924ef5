"""One JSON answer, and what is said of an error that nobody expected."""

from __future__ import annotations

import sys
from typing import Final

from crocevia.asgi.types import Headers, Send
from crocevia.core.errors import GatewayError, Reason

JSON: Final = b"application/json"


async def reply(send: Send, status: int, body: bytes, headers: Headers) -> int:
    """One JSON answer; the bytes sent."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", JSON),
                (b"content-length", b"%d" % len(body)),
                (b"cache-control", b"no-store"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
    return len(body)


def expected(error: Exception, door: str, **where: str) -> GatewayError:
    """The error that the caller is told about; one that is ours alone is logged here, without what it says."""
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
