"""`POST /v1/embeddings`: texts as vectors."""

from __future__ import annotations

import base64
import struct
from typing import Any, Final, Protocol

import msgspec

from crocevia.asgi.answers import reply
from crocevia.asgi.types import Receive, Scope, Send
from crocevia.core import json
from crocevia.core.embeddings import Embedded
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.responses import head
from crocevia.doors.responses.plan import WRITE, Desk
from crocevia.doors.responses.requests import body_of

MOST: Final = 2048  # inputs of one request
LONGEST: Final = 32_768  # characters of one input
ALL: Final = 1_000_000  # characters of all inputs


class Request(msgspec.Struct, frozen=True, kw_only=True):
    model: str | None = None
    input: str | list[Any] | None = None
    encoding_format: str | None = None
    dimensions: int | None = None
    user: str | None = None


class Embedder(Protocol):
    """Where vectors come from; `model` is the name that the caller gave, or that a header put in its place."""

    async def embed(
        self, user_id: str, model: str, texts: list[str], *, dimensions: int | None, bytes_in: int
    ) -> Embedded: ...


async def embed(desk: Desk, embedder: Embedder, scope: Scope, receive: Receive, send: Send) -> None:
    """Raises GatewayError."""
    asked = head.read(scope)
    operator = await desk.operators.authenticate(asked.approach)
    operator.grant.demand(WRITE)
    body = await body_of(desk, asked, receive)
    request = json.decode(body or b"{}", Request)
    if not request.model:
        raise GatewayError(Reason.MODEL_MISSING_EMBEDDINGS, param="model")
    texts = _texts(request.input)
    form = request.encoding_format or "float"
    if form not in ("float", "base64"):
        raise GatewayError(Reason.ENCODING_UNKNOWN, param="encoding_format")
    if request.dimensions is not None and request.dimensions < 1:
        raise GatewayError(Reason.NUMBER_LEAST, param="dimensions", path="dimensions", least=1)
    name = asked.model or request.model
    made = await embedder.embed(operator.user_id, name, texts, dimensions=request.dimensions, bytes_in=len(body))
    rows = [
        {"object": "embedding", "index": index, "embedding": _shown(vector, form)}
        for index, vector in enumerate(made.vectors)
    ]
    tokens = made.tokens
    usage = None if tokens is None else {"prompt_tokens": tokens, "total_tokens": tokens}
    answer = {"object": "list", "data": rows, "model": request.model, "usage": usage}
    await reply(send, 200, json.encode(answer), [])


def _texts(given: str | list[Any] | None) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise GatewayError(Reason.EMBEDDINGS_TEXTS, param="input")
    if not any(texts):
        raise GatewayError(Reason.EMBEDDINGS_EMPTY, param="input")
    if len(texts) > MOST:
        raise GatewayError(Reason.EMBEDDINGS_MANY, param="input", limit=MOST)
    if max(map(len, texts)) > LONGEST:
        raise GatewayError(Reason.EMBEDDINGS_LONG, param="input", limit=LONGEST)
    if sum(map(len, texts)) > ALL:
        raise GatewayError(Reason.EMBEDDINGS_LARGE, param="input", limit=ALL)
    return texts


def _shown(vector: memoryview, form: str) -> str | list[float]:
    """base64 is of little-endian float32, as the vector already is."""
    return (
        base64.b64encode(vector).decode()
        if form == "base64"
        else list(struct.unpack(f"<{vector.nbytes // 4}f", vector))
    )
