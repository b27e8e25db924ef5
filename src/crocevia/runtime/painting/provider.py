"""One picture from a provider: the model that is meant, admitted, paid for and recorded like any call."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import msgspec

from crocevia.core.calls import ModelRequest
from crocevia.core.catalogue import ModelSpec, ProjectSpec
from crocevia.core.errors import Code, GatewayError, say
from crocevia.core.ids import new_id
from crocevia.core.images import ImageEngine, ImageSetting, ImageWish, Painted, Picture
from crocevia.core.messages import user
from crocevia.core.usage import Usage
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.gateway import DRAIN_SECONDS, EngineSource, Gateway, Recorder
from crocevia.storage.records import OpenedCall, SettledCall

ENCODE: Final = "image"
LONGEST: Final = 300.0


class Done(msgspec.Struct, frozen=True):
    """cost_usd None: nobody knows."""

    painted: Painted
    cost_usd: float | None


class Painting:
    """One per server."""

    def __init__(self, gateway: Gateway, catalogue: CatalogueHolder, engines: EngineSource, records: Recorder) -> None:
        self._gateway = gateway
        self._catalogue = catalogue
        self._engines = engines
        self._records = records

    def settings(self, spec: ModelSpec) -> tuple[ImageSetting, ...]:
        """What the model can be told. Raises GatewayError(UNAVAILABLE)."""
        return self._engine(spec).settings(spec.upstream)

    def check(self, spec: ModelSpec, wish: ImageWish) -> None:
        """Raises GatewayError: DRAINING, UNAVAILABLE, UNSUPPORTED."""
        if self._gateway.draining:
            raise GatewayError(Code.DRAINING, retry_after=int(DRAIN_SECONDS))
        self._engine(spec).check_wish(wish)

    async def paint(
        self, user_id: str, spec: ModelSpec, wish: ImageWish, inputs: tuple[Picture, ...], mask: Picture | None
    ) -> Done:
        """Raises GatewayError: what providers and limits say."""
        engine = self._engine(spec)
        tenant = ProjectSpec(name=f"user:{user_id}", model=spec.name)
        now = time.time()
        asked = ModelRequest(model=spec.upstream, messages=(user(wish.prompt),), max_tokens=0)
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
                door="atp",
                catalogue_revision=self._catalogue.current.revision,
                encode=ENCODE,
                user_id=user_id,
                model=spec.name,
                engine=engine.name,
                reserved_usd=charge.reserved_usd,
                bytes_in=len(wish.prompt.encode()) + sum(len(picture.data) for picture in inputs),
            )
        )
        outcome, usage = Code.INTERNAL.value, Usage()
        try:
            deadline = asyncio.get_running_loop().time() + LONGEST
            painted = await engine.paint(wish, inputs, mask, deadline=deadline)
            outcome, usage = "ok", painted.usage or Usage()
            return Done(painted, charge.settle(usage))
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

    def _engine(self, spec: ModelSpec) -> ImageEngine:
        engine = self._engines(spec.engine)
        if not isinstance(engine, ImageEngine):
            raise GatewayError(Code.UNSUPPORTED, say("image_model_unknown"), param="model")
        return engine
