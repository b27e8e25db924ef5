"""Texts as vectors: the model that is meant, admitted, paid for and recorded like any call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from crocevia.core.calls import ModelRequest
from crocevia.core.catalogue import ModelSpec, Prices, ProjectSpec
from crocevia.core.embeddings import Embedded, EmbeddingEngine, EmbeddingRequest
from crocevia.core.errors import Code, GatewayError, say
from crocevia.core.ids import new_id
from crocevia.core.messages import user
from crocevia.core.usage import Usage
from crocevia.storage.records import OpenedCall, SettledCall

from .catalogue import CatalogueHolder
from .gateway import DRAIN_SECONDS, EngineSource, Gateway, Recorder

ENCODE: Final = "embeddings"
_KIND: Final = "openai-embeddings"
_LONGEST: Final = 120.0
_FREE: Final = Prices(input=0, output=0)


class Embeddings:
    """One per server. local: the small model that comes with the program, if it is installed."""

    def __init__(
        self,
        gateway: Gateway,
        catalogue: CatalogueHolder,
        engines: EngineSource,
        records: Recorder,
        *,
        local: Callable[[], EmbeddingEngine | None] = lambda: None,
    ) -> None:
        self._gateway = gateway
        self._catalogue = catalogue
        self._engines = engines
        self._records = records
        self._local = local

    async def embed(
        self, user_id: str, model: str, texts: list[str], *, dimensions: int | None, bytes_in: int
    ) -> Embedded:
        """One vector per text. `model` is a name of the catalogue, or of an agent: then the default one embeds.

        Raises GatewayError: UNSUPPORTED, UNAVAILABLE, DRAINING, and what providers and limits say.
        """
        if self._gateway.draining:
            raise GatewayError(Code.DRAINING, retry_after=int(DRAIN_SECONDS))
        spec, engine = self._find(model)
        tenant = ProjectSpec(name=f"user:{user_id}", model=spec.name)
        asked = ModelRequest(model=spec.upstream, messages=tuple(map(user, texts)), max_tokens=0)
        now = time.time()
        charge = self._gateway.spend.reserve(tenant, spec, asked, now)
        try:
            permit = self._gateway.admission.admit(tenant.name, hourly=None, concurrency=None, now=now)
        except GatewayError:
            charge.release()
            raise
        call_id = new_id("call")
        self._records.put(
            OpenedCall(
                id=call_id,
                started_at=now,
                door="responses",
                catalogue_revision=self._catalogue.current.revision,
                encode=ENCODE,
                user_id=user_id,
                model=spec.name,
                engine=engine.name,
                reserved_usd=charge.reserved_usd,
                bytes_in=bytes_in,
            )
        )
        outcome, usage = Code.INTERNAL.value, Usage()
        request = EmbeddingRequest(model=spec.upstream, texts=tuple(texts), dimensions=dimensions)
        try:
            made = await engine.embed(request, deadline=asyncio.get_running_loop().time() + _LONGEST)
            outcome = "ok"
            usage = Usage(input_tokens=made.tokens, output_tokens=None if made.tokens is None else 0)
            return made
        except GatewayError as error:
            outcome = error.code.value
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            permit.release()
            self._records.put(
                SettledCall(
                    id=call_id,
                    settled_at=time.time(),
                    outcome=outcome,
                    ended_by="client" if outcome == "cancelled" else "model",
                    usage=usage,
                    cost_usd=charge.settle(usage),
                    first_byte_seconds=time.time() - now,
                )
            )

    def _find(self, name: str) -> tuple[ModelSpec, EmbeddingEngine]:
        catalogue = self._catalogue.current
        spec = catalogue.models.get(name)
        if spec is not None:
            engine = self._engines(spec.engine)
            if not isinstance(engine, EmbeddingEngine):
                raise GatewayError(Code.UNSUPPORTED, say("embeddings_model", model=name), param="model")
            return spec, engine
        for other in catalogue.models.values():
            declared = catalogue.engines.get(other.engine)
            if declared is not None and declared.kind == _KIND:
                engine = self._engines(other.engine)
                assert isinstance(engine, EmbeddingEngine)
                return other, engine
        local = self._local()
        if local is None:
            raise GatewayError(Code.UNSUPPORTED, say("embeddings_none"), param="model")
        return ModelSpec(name=local.name, engine=local.name, prices=_FREE), local
