"""OpenAI's images API, and every server that speaks like it."""

from __future__ import annotations

import base64
import secrets
from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from crocevia.core.calls import Abilities, ModelRequest
from crocevia.core.catalogue import EngineSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import ModelEvent
from crocevia.core.images import ImageRequest, ImageResult, ImageSetting, Picture
from crocevia.core.usage import Usage
from crocevia.engines.context import EngineContext
from crocevia.engines.openai.chat import BASE_URL, bearer
from crocevia.engines.upstream import counts
from crocevia.engines.upstream import errors as upstream_errors
from crocevia.engines.upstream.http import HttpClient
from crocevia.engines.upstream.service import ApiClient, refuse_call

_SIZES: Final = {"1:1": "1024x1024", "3:2": "1536x1024", "2:3": "1024x1536", "as_input_image": "auto"}
_FORMATS: Final = ("png", "jpeg", "webp")
_SETTINGS: Final = (
    ImageSetting(key="background", choices=("auto", "transparent", "opaque"), default="auto"),
    ImageSetting(key="moderation", choices=("auto", "low"), default="auto"),
    ImageSetting(key="input_fidelity", choices=("low", "high"), default="low"),
)


class _Image(msgspec.Struct):
    b64_json: str


class _Answer(msgspec.Struct):
    data: list[_Image]
    usage: Any = None
    output_format: Any = None


def build(spec: EngineSpec, context: EngineContext) -> ImagesEngine:
    return ImagesEngine(spec.name, spec.base_url or BASE_URL, context.api_key, context.http)


class ImagesEngine:
    """`base_url` is given with `/v1`. It generates images only."""

    dialect = "plain"

    def __init__(self, name: str, base_url: str, api_key: str | None, http: HttpClient) -> None:
        self.name = name
        self._service = ApiClient(base_url, bearer(api_key), http)

    def abilities(self, model: str) -> Abilities:
        return Abilities()

    def call(self, request: ModelRequest, *, deadline: float) -> AsyncGenerator[list[ModelEvent], None]:
        return refuse_call(self.name)

    def settings(self, model: str) -> tuple[ImageSetting, ...]:
        return _SETTINGS

    def check_request(self, request: ImageRequest) -> None:
        """Raises GatewayError(UNSUPPORTED)."""
        choices = {setting.key: setting.choices for setting in _SETTINGS}
        wrong = {
            "objects_image": request.objects,
            "format": request.format is not None and request.format not in _FORMATS,
            "aspect_ratio": request.aspect_ratio is not None and request.aspect_ratio not in _SIZES,
            "resolution": request.resolution not in (None, "1k"),
            **{
                f"model_settings.{key}": value not in choices[key]
                for key, value in request.settings.items()
                if key in choices
            },
        }
        for param, holds in wrong.items():
            if holds:
                raise GatewayError(Reason.IMAGE_WISH_UNSUPPORTED, param=param, engine=self.name)

    async def generate(
        self, request: ImageRequest, inputs: tuple[Picture, ...], mask: Picture | None, *, deadline: float
    ) -> ImageResult:
        fields = _fields(request, with_inputs=bool(inputs))
        if inputs:
            boundary = secrets.token_hex(16)
            headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
            body = _form(boundary, fields, inputs, mask)
            answer = await self._service.post("images/edits", body, deadline=deadline, headers=headers)
        else:
            answer = await self._service.post("images/generations", msgspec.json.encode(fields), deadline=deadline)
        known = {setting.key for setting in _SETTINGS}
        return _result(answer, request, tuple(sorted(key for key in request.settings if key not in known)))

    async def probe(self) -> None:
        await self._service.probe()

    async def close(self) -> None:
        """The connections belong to the client that was passed in."""


def _fields(request: ImageRequest, *, with_inputs: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"model": request.model, "prompt": request.prompt, "n": 1}
    if request.dimensions is not None:
        fields["size"] = "{}x{}".format(*request.dimensions)
    elif request.aspect_ratio is not None:
        fields["size"] = _SIZES[request.aspect_ratio]
    if request.format is not None:
        fields["output_format"] = request.format
    if request.quality is not None:
        fields["quality"] = ("low", "medium", "high")[min(2, (request.quality - 1) * 3 // 100)]
    if request.model.startswith("dall-e"):
        fields["response_format"] = "b64_json"  # its default is an address
    for setting in _SETTINGS:
        if setting.key in request.settings and (with_inputs or setting.key != "input_fidelity"):
            fields[setting.key] = request.settings[setting.key]
    return fields


def _form(boundary: str, fields: dict[str, Any], inputs: tuple[Picture, ...], mask: Picture | None) -> bytes:
    out = bytearray()
    for name, value in fields.items():
        out += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    files = [("image[]", picture) for picture in inputs] + ([("mask", mask)] if mask is not None else [])
    for index, (name, picture) in enumerate(files):
        ending = picture.media_type.rpartition("/")[2]
        out += (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{index}.{ending}"\r\n'
            f"Content-Type: {picture.media_type}\r\n\r\n"
        ).encode()
        out += picture.data + b"\r\n"
    out += f"--{boundary}--\r\n".encode()
    return bytes(out)


def _result(body: bytes, request: ImageRequest, ignored: tuple[str, ...]) -> ImageResult:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        data = [base64.b64decode(image.b64_json, validate=True) for image in answer.data]
    except (*upstream_errors.UNREADABLE, ValueError):  # no base64
        raise upstream_errors.malformed() from None
    if not data:
        raise upstream_errors.malformed()
    known = (answer.output_format, request.format, "png")
    label = f"image/{next(one for one in known if one in _FORMATS)}"
    used = answer.usage
    usage = None
    if isinstance(used, dict):
        spent, made = counts.tokens(used, "input_tokens"), counts.tokens(used, "output_tokens")
        usage = Usage(input_tokens=spent, output_tokens=made)
    return ImageResult(images=tuple(Picture(label, one) for one in data), usage=usage, ignored=ignored)
