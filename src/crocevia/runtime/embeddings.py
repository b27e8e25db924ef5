"""Texts as vectors: the model that is meant, admitted, paid for and recorded like any call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from crocevia.core.calls import GenerationOptions, ModelRequest
from crocevia.core.catalogue import ModelSpec, Prices
from crocevia.core.embeddings import Embedded, EmbeddingEngine, EmbeddingRequest
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import UserMessage, user
from crocevia.core.usage import Usage
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.gateway import EngineSource, Gateway, UnaryDraft

ENCODE: Final = "embeddings"
_LONGEST: Final = 120.0
_FREE: Final = Prices(input=0, output=0)

_NOTHING: Final = GenerationOptions(max_tokens=0)  # no text comes of it


class Embeddings:
    """One per server. local: the small model that comes with the program, if it is installed."""

    def __init__(
        self,
        gateway: Gateway,
        catalogue: CatalogueHolder,
        engines: EngineSource,
        *,
        local: Callable[[], EmbeddingEngine | None] = lambda: None,
    ) -> None:
        self._gateway = gateway
        self._catalogue = catalogue
        self._engines = engines
        self._local = local

    async def embed(
        self,
        user_id: str,
        model: str | None,
        texts: list[str],
        *,
        tokens: list[list[int]] | None = None,
        dimensions: int | None,
        bytes_in: int,
    ) -> Embedded:
        """One vector per text. model: a name of the catalogue; None: the usual one embeds. tokens: instead of texts.

        Raises GatewayError: UNSUPPORTED, UNAVAILABLE, DRAINING, and what providers and limits say.
        """
        spec, engine = self._find(model)
        call = self._gateway.unary_call(
            UnaryDraft(
                door="responses",
                encode=ENCODE,
                user_id=user_id,
                model=spec,
                engine=engine.name,
                asked=ModelRequest(model=spec.upstream, messages=_messages(texts, tokens), options=_NOTHING),
                seconds=_LONGEST,
                bytes_in=bytes_in,
            )
        )
        request = EmbeddingRequest(
            model=spec.upstream,
            texts=tuple(texts),
            dimensions=dimensions,
            tokens=tuple(map(tuple, tokens or ())),
        )
        async with call:
            made = await engine.embed(request, deadline=call.deadline)
            call.usage = Usage(input_tokens=made.tokens, output_tokens=None if made.tokens is None else 0)
        return made

    def _find(self, name: str | None) -> tuple[ModelSpec, EmbeddingEngine]:
        catalogue = self._catalogue.current
        if name is not None:
            spec = catalogue.models.get(name)
            if spec is None:
                raise GatewayError(Reason.MODEL_UNKNOWN, param="model", name=name[:80])
            engine = self._engines(spec.engine)
            if not isinstance(engine, EmbeddingEngine):
                raise GatewayError(Reason.EMBEDDINGS_MODEL, param="model", model=name)
            return spec, engine
        for other in catalogue.models.values():
            declared = catalogue.engines.get(other.engine)
            if declared is not None and declared.traits.embeds:
                engine = self._engines(other.engine)
                assert isinstance(engine, EmbeddingEngine)
                return other, engine
        local = self._local()
        if local is None:
            raise GatewayError(Reason.EMBEDDINGS_NONE, param="model")
        return ModelSpec(name=local.name, engine=local.name, prices=_FREE), local


def _messages(texts: list[str], tokens: list[list[int]] | None) -> tuple[UserMessage, ...]:
    """What the call is estimated by: a token is about four letters."""
    return tuple(map(user, texts if tokens is None else ("    " * len(one) for one in tokens)))
