"""Pictures from words: what an engine that paints promises."""

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


class ImageWish(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted, without the input pictures themselves. model: the provider's own name for it.

    inputs, mask, objects: how many pictures of each kind come with it. quality: 1 to 100.
    """

    model: str
    prompt: str
    inputs: int = 0
    mask: bool = False
    objects: bool = False
    resolution: str | None = None
    dimensions: tuple[int, int] | None = None
    aspect_ratio: str | None = None
    format: str | None = None
    quality: int | None = None
    settings: dict[str, Any] = {}


class ImageSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of a model. choices empty: any text."""

    key: str
    choices: tuple[str, ...] = ()
    default: str | None = None


class Painted(msgspec.Struct, frozen=True, kw_only=True):
    """usage None: nobody counted. ignored: settings that the engine did not take."""

    images: tuple[Picture, ...]
    usage: Usage | None = None
    ignored: tuple[str, ...] = ()


@runtime_checkable
class ImageEngine(Protocol):
    """An engine that paints. `name` is that of its declaration."""

    name: str

    def settings(self, model: str) -> tuple[ImageSetting, ...]:
        """What `ImageWish.settings` may hold for this model."""
        ...

    def check_wish(self, wish: ImageWish) -> None:
        """Raises GatewayError(UNSUPPORTED) with the field that this engine cannot satisfy, before anything is paid."""
        ...

    async def paint(
        self, wish: ImageWish, inputs: tuple[Picture, ...], mask: Picture | None, *, deadline: float
    ) -> Painted:
        """Raises GatewayError. deadline: `loop.time()` at which it must be over. Never tried twice: it may be paid."""
        ...
