"""Image generation: what an engine that makes pictures promises."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import msgspec

from crocevia.core.usage import Usage


class Picture(msgspec.Struct, frozen=True):
    """Bytes of a sniffed media type."""

    media_type: str
    data: bytes

    def __repr__(self) -> str:
        return f"Picture({self.media_type}, {len(self.data)} bytes)"


class ImageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One generation, without the bytes of its input pictures."""

    model: str
    """The provider's own name for it."""
    prompt: str
    inputs: int = 0
    """How many input pictures come with it, not counting the mask and the objects picture."""
    mask: bool = False
    """Whether a mask comes with it."""
    objects: bool = False
    """Whether a picture of objects to place comes with it."""
    resolution: str | None = None
    dimensions: tuple[int, int] | None = None
    aspect_ratio: str | None = None
    format: str | None = None
    quality: int | None = None
    """1 to 100."""
    settings: dict[str, Any] = {}
    """Settings of the model by key; see `ImageEngine.settings`."""


class ImageSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of a model."""

    key: str
    choices: tuple[str, ...] = ()
    """The accepted values; empty: any text."""
    default: str | None = None


class ImageResult(msgspec.Struct, frozen=True, kw_only=True):
    """The pictures that were made."""

    images: tuple[Picture, ...]
    usage: Usage | None = None
    """None: the provider did not say."""
    ignored: tuple[str, ...] = ()
    """Keys of settings that the engine did not use."""


@runtime_checkable
class ImageEngine(Protocol):
    """An engine that generates images."""

    name: str
    """The name of its declaration."""

    def settings(self, model: str) -> tuple[ImageSetting, ...]:
        """What `ImageRequest.settings` may hold for this model."""
        ...

    def check_request(self, request: ImageRequest) -> None:
        """Raises GatewayError(UNSUPPORTED) with the field that this engine cannot satisfy, before anything is paid."""
        ...

    async def generate(
        self, request: ImageRequest, inputs: tuple[Picture, ...], mask: Picture | None, *, deadline: float
    ) -> ImageResult:
        """Generate images; never retried, since the provider may have charged for it. Raises GatewayError.

        deadline: `loop.time()` at which it must be over.
        """
        ...
