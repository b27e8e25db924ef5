"""One image generation by a provider: admitted, paid for and recorded like any call."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.calls import GenerationOptions, ModelRequest
from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.images import ImageEngine, ImageRequest, ImageResult, ImageSetting, Picture
from crocevia.core.messages import user
from crocevia.core.usage import Usage
from crocevia.runtime.gateway import EngineSource, Gateway, UnaryDraft

ENCODE: Final = "image"
LONGEST: Final = 300.0

_NOTHING: Final = GenerationOptions(max_tokens=0)  # no text comes of it


class PaidImages(msgspec.Struct, frozen=True):
    """A result and what it cost."""

    result: ImageResult
    cost_usd: float | None
    """None: unknown."""


class ImageGenerator:
    """One per server."""

    def __init__(self, gateway: Gateway, engines: EngineSource) -> None:
        self._gateway = gateway
        self._engines = engines

    def settings(self, spec: ModelSpec) -> tuple[ImageSetting, ...]:
        """The settings that the model takes. Raises GatewayError(UNAVAILABLE)."""
        return self._engine(spec).settings(spec.upstream)

    def check(self, spec: ModelSpec, request: ImageRequest) -> None:
        """Raises GatewayError: DRAINING, UNAVAILABLE, UNSUPPORTED."""
        self._gateway.check_open()
        self._engine(spec).check_request(request)

    async def generate(
        self, user_id: str, spec: ModelSpec, request: ImageRequest, inputs: tuple[Picture, ...], mask: Picture | None
    ) -> PaidImages:
        """Generate images. Raises GatewayError: DRAINING, UNAVAILABLE, and those of limits and providers."""
        engine = self._engine(spec)
        call = self._gateway.unary_call(
            UnaryDraft(
                door="atp",
                encode=ENCODE,
                user_id=user_id,
                model=spec,
                engine=engine.name,
                asked=ModelRequest(model=spec.upstream, messages=(user(request.prompt),), options=_NOTHING),
                seconds=LONGEST,
                bytes_in=len(request.prompt.encode()) + sum(len(picture.data) for picture in inputs),
            )
        )
        async with call:
            result = await engine.generate(request, inputs, mask, deadline=call.deadline)
            call.usage = result.usage or Usage()
        return PaidImages(result, call.cost_usd)

    def _engine(self, spec: ModelSpec) -> ImageEngine:
        engine = self._engines(spec.engine)
        if not isinstance(engine, ImageEngine):
            raise GatewayError(Reason.IMAGE_MODEL_UNKNOWN, param="model")
        return engine
