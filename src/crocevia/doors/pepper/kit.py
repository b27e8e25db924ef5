"""`GET /kit.php`: the chat kit's files, its version, and the name of a project's model. No key, for every origin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from crocevia import kit
from crocevia.asgi.http import Request, Response
from crocevia.asgi.types import Headers
from crocevia.core.errors import GatewayError, Reason

# Any page may load and read this, and none gets more by sending its cookies: there is nothing private here.
_OPEN: Final[Headers] = ((b"access-control-allow-origin", b"*"), (b"cross-origin-resource-policy", b"cross-origin"))
_CACHE: Final = b"public, no-cache"


async def read_kit(model_of: Callable[[str], str | None], request: Request[Any]) -> Response:
    """`f` wins over `progetto`; without both, the version. Unknown parameters mean nothing."""
    request.answer_headers = lambda: _OPEN
    asked = {name: values[0] for name, values in request.query.items()}
    if "f" in asked:
        return _file(request, asked["f"])
    content = {"modello": model_of(asked["progetto"])} if "progetto" in asked else {"versione": kit.version()}
    return Response(200, content, cache=_CACHE)


def _file(request: Request[Any], short: str) -> Response:
    file = kit.load().get(short)
    if file is None:
        raise GatewayError(Reason.NOT_FOUND)
    tag = ((b"etag", file.etag.encode()),)
    if _holds(request.headers(b"if-none-match"), file.etag):
        return Response(304, None, tag, cache=_CACHE)
    return Response(200, file.content, tag, file.media_type.encode(), _CACHE)


def _holds(values: list[bytes], etag: str) -> bool:
    """Whether the browser's copy is this one. Proxies that compress mark the tag as weak; it is the same file."""
    held = b",".join(values).decode("latin-1")
    return any(tag.strip().removeprefix("W/") in (etag, "*") for tag in held.split(",") if tag.strip())
