"""One picture from a provider: the model that is meant, admitted, paid for and recorded like any call."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.calls import ModelRequest
from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import Code, GatewayError, say
from crocevia.core.images import ImageEngine, ImageSetting, ImageWish, Painted, Picture
from crocevia.core.messages import user
from crocevia.core.usage import Usage
from crocevia.runtime.gateway import EngineSource, Gateway, SideDraft

ENCODE: Final = "image"
LONGEST: Final = 300.0


class Done(msgspec.Struct, frozen=True):
    """cost_usd None: nobody knows."""

    painted: Painted
    cost_usd: float | None


class Painting:
    """One per server."""

    def __init__(self, gateway: Gateway, engines: EngineSource) -> None:
        self._gateway = gateway
        self._engines = engines

    def settings(self, spec: ModelSpec) -> tuple[ImageSetting, ...]:
        """What the model can be told. Raises GatewayError(UNAVAILABLE)."""
        return self._engine(spec).settings(spec.upstream)

    def check(self, spec: ModelSpec, wish: ImageWish) -> None:
        """Raises GatewayError: DRAINING, UNAVAILABLE, UNSUPPORTED."""
        self._gateway.check_open()
        self._engine(spec).check_wish(wish)

    async def paint(
        self, user_id: str, spec: ModelSpec, wish: ImageWish, inputs: tuple[Picture, ...], mask: Picture | None
    ) -> Done:
        """Raises GatewayError: DRAINING, UNAVAILABLE, and what providers and limits say."""
        engine = self._engine(spec)
        call = self._gateway.side_call(
            SideDraft(
                door="atp",
                encode=ENCODE,
                user_id=user_id,
                model=spec,
                engine=engine.name,
                asked=ModelRequest(model=spec.upstream, messages=(user(wish.prompt),), max_tokens=0),
                seconds=LONGEST,
                bytes_in=len(wish.prompt.encode()) + sum(len(picture.data) for picture in inputs),
            )
        )
        async with call:
            painted = await engine.paint(wish, inputs, mask, deadline=call.deadline)
            call.usage = painted.usage or Usage()
        return Done(painted, call.cost_usd)

    def _engine(self, spec: ModelSpec) -> ImageEngine:
        engine = self._engines(spec.engine)
        if not isinstance(engine, ImageEngine):
            raise GatewayError(Code.UNSUPPORTED, say("image_model_unknown"), param="model")
        return engine
