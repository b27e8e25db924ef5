"""Pages of other origins: which of them may read answers, where the settings name any."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from crocevia.asgi.http import Request, Response
from crocevia.asgi.types import Header, Headers

ANY: Final = "*"
_ALLOW: Final = b"access-control-allow-origin"
_EXPOSED: Final = (
    b"X-Request-Id, Retry-After, WWW-Authenticate, Content-Disposition, ETag, "
    b"X-Pepper-Budget-Limit, X-Pepper-Budget-Remaining, X-Pepper-Budget-Reset, "
    b"X-Pepper-Limit, X-Pepper-Limit-Remaining, X-Pepper-Limit-Reset, "
    b"X-Envai-Contract-Version, X-Envai-Required-Contract-Version, "
    b"X-Envai-Stream-Epoch, X-Envai-Stream-First-Seq, X-Envai-Stream-Last-Seq"
)
_VARY: Final[Header] = (b"vary", b"Origin")
_AGE: Final = b"600"  # seconds for which a browser remembers


def allowed(request: Request[Any], own: Headers) -> list[Header]:
    """What lets a page of an allowed origin read this answer. own: its headers; one may let everybody by itself."""
    granted = None if any(name == _ALLOW for name, _ in own) else _granted(request)
    return [_VARY] if granted is None else [granted, _VARY, (b"access-control-expose-headers", _EXPOSED)]


def preflight(request: Request[Any], methods: Iterable[str]) -> Response | None:
    """The answer to a browser that asks what a page may send here; None: it is no such question, or not for it."""
    if not request.front.cors_origins or request.header(b"access-control-request-method") is None:
        return None
    if _granted(request) is None:
        return None
    wanted = request.header(b"access-control-request-headers") or b""
    headers = [
        (b"access-control-allow-methods", ", ".join(sorted(methods)).encode()),
        (b"access-control-max-age", _AGE),
    ]
    if wanted:
        headers.append((b"access-control-allow-headers", wanted))
    return Response(204, None, headers)


def _granted(request: Request[Any]) -> Header | None:
    origins, origin = request.front.cors_origins, request.header(b"origin")
    if origin is None:
        return None
    if ANY in origins:
        return (_ALLOW, ANY.encode())
    return (_ALLOW, origin) if origin.decode("latin-1") in origins else None
