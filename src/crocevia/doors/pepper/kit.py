"""`GET /kit.php`: the chat kit's files, its version, and the name of a project's model. No key, for every origin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from crocevia import kit
from crocevia.asgi.answers import JSON
from crocevia.asgi.types import Headers, Receive, Scope, Send
from crocevia.core import json
from crocevia.core.errors import Code, GatewayError, MethodNotAllowed, Reason
from crocevia.doors.pepper.errors import TABLE, failure

_READS: Final = frozenset({"GET", "HEAD"})
_MAX_PARAMETERS: Final = 20
# Any page may load and read this, and none gets more by sending its cookies: there is nothing private here.
_OPEN: Final[Headers] = [
    (b"access-control-allow-origin", b"*"),
    (b"cross-origin-resource-policy", b"cross-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"public, no-cache"),
]


class KitEndpoint:
    """The kit. model_of: the model's name of a project by name, None if there is no such project."""

    def __init__(self, model_of: Callable[[str], str | None]) -> None:
        self._model_of = model_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`f` wins over `progetto`; without both, the version. Unknown parameters mean nothing."""
        head_only = scope["method"] == "HEAD"
        try:
            if scope["method"] not in _READS:
                raise MethodNotAllowed("GET")
            asked = _parameters(scope["query_string"])
            if "f" in asked:
                await _send_file(scope, send, asked["f"], head_only)
                return
            content = (
                {"modello": self._model_of(asked["progetto"])} if "progetto" in asked else {"versione": kit.version()}
            )
            await _send(send, 200, json.encode(content), [(b"content-type", JSON)], head_only)
        except GatewayError as error:
            body = json.encode({"error": failure(error)})
            allow: Headers = [(b"allow", b"GET, HEAD")] if error.code is Code.METHOD_NOT_ALLOWED else []
            await _send(send, TABLE[error.code][0], body, [(b"content-type", JSON), *allow], head_only)


async def _send_file(scope: Scope, send: Send, short: str, head_only: bool) -> None:
    file = kit.load().get(short)
    if file is None:
        raise GatewayError(Reason.NOT_FOUND)
    headers: Headers = [(b"content-type", file.media_type.encode()), (b"etag", file.etag.encode())]
    if _holds(scope["headers"], file.etag):
        await send({"type": "http.response.start", "status": 304, "headers": [*headers[1:], *_OPEN]})
        await send({"type": "http.response.body", "body": b""})
        return
    await _send(send, 200, file.content, headers, head_only)


async def _send(send: Send, status: int, body: bytes, headers: Headers, head_only: bool) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length, *_OPEN]})
    await send({"type": "http.response.body", "body": b"" if head_only else body})


def _parameters(query: bytes) -> dict[str, str]:
    """The first value of each parameter; bytes that are not UTF-8 name nothing that exists."""
    try:
        found = parse_qs(query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        raise GatewayError(Reason.INVALID_REQUEST) from None
    return {name: values[0] for name, values in found.items()}


def _holds(headers: list[tuple[bytes, bytes]], etag: str) -> bool:
    """Whether the browser's copy is this one. Proxies that compress mark the tag as weak; it is the same file."""
    held = b",".join(value for name, value in headers if name == b"if-none-match").decode("latin-1")
    return any(tag.strip().removeprefix("W/") in (etag, "*") for tag in held.split(",") if tag.strip())
