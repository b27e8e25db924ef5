"""OpenAI's embeddings API, and every server that speaks like it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from crocevia.core.calls import Abilities, ModelRequest
from crocevia.core.catalogue import EngineSpec
from crocevia.core.embeddings import Embedded, EmbeddingRequest
from crocevia.core.errors import GatewayError
from crocevia.core.events import ModelEvent
from crocevia.engines.context import EngineContext
from crocevia.engines.openai.chat import BASE_URL, bearer
from crocevia.engines.upstream import counts
from crocevia.engines.upstream import errors as upstream_errors
from crocevia.engines.upstream.http import HttpClient
from crocevia.engines.upstream.retry import RetryPolicy, pause
from crocevia.engines.upstream.service import ApiClient, refuse_call


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Row]
    usage: Any = None


def build(spec: EngineSpec, context: EngineContext) -> EmbeddingsEngine:
    return EmbeddingsEngine(spec.name, spec.base_url or BASE_URL, context.api_key, context.http)


class EmbeddingsEngine:
    """`base_url` is given with `/v1`. It embeds and holds no conversations."""

    dialect = "plain"

    def __init__(self, name: str, base_url: str, api_key: str | None, http: HttpClient) -> None:
        self.name = name
        self._service = ApiClient(base_url, bearer(api_key), http)
        self._retry = RetryPolicy()

    def abilities(self, model: str) -> Abilities:
        return Abilities()

    def call(self, request: ModelRequest, *, deadline: float) -> AsyncGenerator[list[ModelEvent], None]:
        return refuse_call(self.name)

    async def embed(self, request: EmbeddingRequest, *, deadline: float) -> Embedded:
        """Raises GatewayError."""
        inputs = request.tokens or request.texts
        body: dict[str, Any] = {"model": request.model, "input": inputs, "encoding_format": "float"}
        if request.dimensions is not None:
            body["dimensions"] = request.dimensions
        data, attempt, loop = msgspec.json.encode(body), 0, asyncio.get_running_loop()
        while True:
            attempt += 1
            try:
                return _vectors(await self._service.post("embeddings", data, deadline=deadline), len(inputs))
            except GatewayError as failure:
                wait = pause(self._retry, failure, attempt, deadline - loop.time())
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    async def probe(self) -> None:
        await self._service.probe()

    async def close(self) -> None:
        """The connections belong to the client that was passed in."""


def _vectors(body: bytes, wanted: int) -> Embedded:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        rows = sorted(answer.data, key=lambda row: row.index)
        packed = tuple(memoryview(struct.pack(f"<{len(row.embedding)}f", *row.embedding)) for row in rows)
    except (*upstream_errors.UNREADABLE, OverflowError):  # a number that no vector can hold
        raise upstream_errors.malformed() from None
    if [row.index for row in rows] != list(range(wanted)):
        raise upstream_errors.malformed()
    return Embedded(packed, counts.tokens(answer.usage, "prompt_tokens"))
