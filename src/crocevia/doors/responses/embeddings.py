"""`POST /v1/embeddings`: texts as vectors."""

from __future__ import annotations

import base64
import struct
from typing import Any, Final, Protocol

from crocevia.asgi.http import Response
from crocevia.core.embeddings import Embedded
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.responses import wire
from crocevia.doors.responses.caller import Request
from crocevia.doors.responses.services import Services

MOST: Final = 2048  # inputs of one request
LONGEST: Final = 32_768  # characters of one input
ALL: Final = 1_000_000  # characters of all inputs


class Embedder(Protocol):
    """Where vectors come from; `model` is the name that the caller gave, or that a header put in its place."""

    async def embed(
        self, user_id: str, model: str, texts: list[str], *, dimensions: int | None, bytes_in: int
    ) -> Embedded: ...


async def embed(services: Services, embedder: Embedder, request: Request) -> Response:
    """Texts as vectors."""
    body: wire.EmbeddingRequest = request.take()
    if not body.model:
        raise GatewayError(Reason.MODEL_MISSING_EMBEDDINGS, param="model")
    texts = _texts(body.input)
    form = body.encoding_format or "float"
    if form not in ("float", "base64"):
        raise GatewayError(Reason.ENCODING_UNKNOWN, param="encoding_format")
    if body.dimensions is not None and body.dimensions < 1:
        raise GatewayError(Reason.NUMBER_LEAST, param="dimensions", path="dimensions", least=1)
    name = request.caller.model or body.model
    user_id = request.caller.operator.user_id
    made = await embedder.embed(user_id, name, texts, dimensions=body.dimensions, bytes_in=request.size)
    rows = [
        {"object": "embedding", "index": index, "embedding": _shown(vector, form)}
        for index, vector in enumerate(made.vectors)
    ]
    tokens = made.tokens
    usage = None if tokens is None else {"prompt_tokens": tokens, "total_tokens": tokens}
    answer = {"object": "list", "data": rows, "model": body.model, "usage": usage}
    return Response(200, answer)


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
