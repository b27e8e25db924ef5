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
LONGEST_TOKENS: Final = 8192
ALL: Final = 1_000_000  # characters of all inputs


class Embedder(Protocol):
    """Where vectors come from. model: of the catalogue; None: the usual one. tokens: what is to be embedded instead of
    texts, by the model's own numbers.
    """

    async def embed(
        self,
        user_id: str,
        model: str | None,
        texts: list[str],
        *,
        tokens: list[list[int]] | None,
        dimensions: int | None,
        bytes_in: int,
    ) -> Embedded: ...


async def embed(services: Services, embedder: Embedder, request: Request) -> Response:
    """Texts as vectors."""
    body: wire.EmbeddingRequest = request.take()
    if not body.model:
        raise GatewayError(Reason.MODEL_MISSING_EMBEDDINGS, param="model")
    texts, tokens = _inputs(body.input)
    form = body.encoding_format or "float"
    if form not in ("float", "base64"):
        raise GatewayError(Reason.ENCODING_UNKNOWN, param="encoding_format")
    if body.dimensions is not None and body.dimensions < 1:
        raise GatewayError(Reason.NUMBER_LEAST, param="dimensions", path="dimensions", least=1)
    operator = request.caller.operator
    name = await services.targets.embedding_model(operator, body.model, override=request.caller.model)
    made = await embedder.embed(
        operator.user_id, name, texts, tokens=tokens, dimensions=body.dimensions, bytes_in=request.size
    )
    rows = [
        {"object": "embedding", "index": index, "embedding": _shown(vector, form)}
        for index, vector in enumerate(made.vectors)
    ]
    usage = None if made.tokens is None else {"prompt_tokens": made.tokens, "total_tokens": made.tokens}
    answer = {"object": "list", "data": rows, "model": body.model, "usage": usage}
    return Response(200, answer)


def _inputs(given: str | list[Any] | None) -> tuple[list[str], list[list[int]] | None]:
    """Texts, or lists of tokens instead. Raises GatewayError(INVALID_REQUEST)."""
    inputs: list[Any] = [given] if isinstance(given, str) or _is_tokens(given) else given or []
    by_number = bool(inputs) and all(map(_is_tokens, inputs))
    if given is None or not (by_number or all(isinstance(text, str) for text in inputs)):
        raise GatewayError(Reason.EMBEDDINGS_TEXTS, param="input")
    if not any(inputs):
        raise GatewayError(Reason.EMBEDDINGS_EMPTY, param="input")
    _check(inputs, LONGEST_TOKENS if by_number else LONGEST)
    return ([], inputs) if by_number else (inputs, None)


def _is_tokens(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(type(one) is int and 0 <= one < 2**31 for one in given)


def _check(inputs: list[Any], longest: int) -> None:
    if len(inputs) > MOST:
        raise GatewayError(Reason.EMBEDDINGS_MANY, param="input", limit=MOST)
    if max(map(len, inputs)) > longest:
        raise GatewayError(Reason.EMBEDDINGS_LONG, param="input", limit=longest)
    if sum(map(len, inputs)) > ALL:
        raise GatewayError(Reason.EMBEDDINGS_LARGE, param="input", limit=ALL)


def _shown(vector: memoryview, form: str) -> str | list[float]:
    """base64 is of little-endian float32, as the vector already is."""
    return (
        base64.b64encode(vector).decode()
        if form == "base64"
        else list(struct.unpack(f"<{vector.nbytes // 4}f", vector))
    )
