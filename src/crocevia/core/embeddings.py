"""Texts as vectors: what an engine that embeds promises."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec


class EmbeddingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """model: the provider's own name for it. dimensions None: as many as the model has.

    tokens: what is to be embedded instead of texts, by the model's own numbers.
    """

    model: str
    texts: tuple[str, ...]
    dimensions: int | None = None
    tokens: tuple[tuple[int, ...], ...] = ()


class Embedded(msgspec.Struct, frozen=True):
    """One vector per text, each little-endian float32 in one buffer."""

    vectors: tuple[memoryview, ...]
    tokens: int | None
    """None: nobody counted them."""


@runtime_checkable
class EmbeddingEngine(Protocol):
    """An engine that embeds. `name` is that of its declaration."""

    name: str

    async def embed(self, request: EmbeddingRequest, *, deadline: float) -> Embedded:
        """Raises GatewayError. deadline: `loop.time()` at which it must be over."""
        ...
