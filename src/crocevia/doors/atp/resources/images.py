"""Pictures: uploads, generations, the models that make them, and signed addresses."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from crocevia.asgi.body import UPLOAD_SECONDS
from crocevia.asgi.fields import read_query
from crocevia.asgi.http import Operation, Response, Stream, data
from crocevia.core.catalogue import ModelSpec
from crocevia.core.declared import FieldError
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.images import ImageRequest, ImageSetting
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.delivery import attachment, deliver
from crocevia.doors.atp.document import PREFIX
from crocevia.doors.atp.form import FileForm
from crocevia.doors.atp.wire.common import Body, Closed, moment, moment_or_none
from crocevia.runtime.control import images as control
from crocevia.runtime.control import uploads

Side = Annotated[int, Meta(ge=1, le=16_384)]
Resolution = Literal["0.5k", "1k", "2k", "3k", "4k"]
Ratio = Literal["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "21:9", "9:21", "as_input_image"]
Status = Literal["accepted", "submitted", "queued", "processing", "succeeded", "failed", "cancelled"]


class InputImage(Closed, frozen=True, kw_only=True):
    type: Literal["url", "base64", "upload_id"]
    payload: Annotated[str, Meta(min_length=1, max_length=10_485_760)]
    reference: Annotated[str, Meta(max_length=255)] | None = None
    mime_type: Literal["image/png", "image/jpeg", "image/webp"] | None = None


class ImageDimensions(Closed, frozen=True, kw_only=True):
    width: Side
    height: Side


class ImageGenerationRequest(Closed, frozen=True, kw_only=True):
    model: Annotated[str, Meta(min_length=1, max_length=255)]
    prompt: Annotated[str, Meta(min_length=1, max_length=5000)]
    webhook_url: Annotated[str, Meta(min_length=1, max_length=2048)]
    input_images: Annotated[list[InputImage], Meta(max_length=10)] | UnsetType = UNSET
    input_image: InputImage | UnsetType = UNSET
    mask_image: InputImage | UnsetType = UNSET
    objects_image: InputImage | UnsetType = UNSET
    resolution: Resolution | UnsetType = UNSET
    dimensions: ImageDimensions | UnsetType = UNSET
    aspect_ratio: Ratio | UnsetType = UNSET
    format: Literal["png", "jpeg", "webp", "svg"] | UnsetType = UNSET
    quality: Annotated[int, Meta(ge=1, le=100)] | UnsetType = UNSET
    model_settings: dict[str, Any] | UnsetType = UNSET
    providers: Annotated[list[Annotated[str, Meta(max_length=255)]], Meta(min_length=1, max_length=64)] | UnsetType = (
        UNSET
    )

    def __post_init__(self) -> None:
        if not self.prompt.strip():
            raise FieldError("prompt", Reason.FIELD_BLANK)
        if self.input_image is not UNSET and self.input_images is not UNSET:
            raise FieldError("input_images", Reason.INPUT_IMAGE_AND_IMAGES)
        for name in ("mask_image", "objects_image"):
            if getattr(self, name) is not UNSET and self.input_image is UNSET:
                raise FieldError(name, Reason.INPUT_IMAGE_NEEDED)
        if self.providers is not UNSET and len(set(self.providers)) < len(self.providers):
            raise FieldError("providers", Reason.GIVEN_TWICE_INSIDE)


class ArtifactQuery(Body, frozen=True, kw_only=True):
    generation: Annotated[str, Meta(pattern=r"^igr_[0-9A-Za-z]{26}$")]
    artifact: Annotated[str, Meta(pattern=r"^art_[0-9A-Za-z]{26}$")]
    signature: Annotated[str, Meta(min_length=1, max_length=128)]
    expires: int | None = None


class ImageGenerationAccepted(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    status: Status
    provider: str
    initial_provider: str
    routed: bool
    model: str
    webhook_url: str
    status_url: str
    created_at: datetime
    expires_at: datetime


class ImageError(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    message: str
    meta: dict[str, Any]


class MadeImage(msgspec.Struct, frozen=True, kw_only=True):
    provider_asset_id: None = None
    mime_type: str
    source_url: str
    format: str


class ImageResult(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    provider: str
    prompt: str
    images: list[MadeImage]
    format: str | None
    warnings: list[str]


class ImageFile(msgspec.Struct, frozen=True, kw_only=True):
    artifact_id: str
    mime_type: str
    size: int
    download_url: str


class ImagePrice(msgspec.Struct, frozen=True, kw_only=True):
    amount: str
    currency: Literal["USD"] = "USD"
    source: Literal["calculated"] = "calculated"


class ImageGenerationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """result, error, files, price, cost_usd, duration_ms: once they are known."""

    id: str
    status: Status
    provider: str
    initial_provider: str
    routed: bool
    model: str
    created_at: datetime
    submitted_at: datetime | None
    completed_at: datetime | None
    expires_at: datetime
    result: ImageResult | UnsetType = UNSET
    error: ImageError | UnsetType = UNSET
    files: list[ImageFile] | UnsetType = UNSET
    price: ImagePrice | UnsetType = UNSET
    cost_usd: float | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET


class ImageUpload(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    mime_type: str
    size: int
    original_filename: str
    expires_at: datetime
    created_at: datetime


class ModelSetting(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    type: Literal["string"] = "string"
    providers: list[str]
    default: str | None
    enum: list[str] | None
    range: None = None


class NoPriceClass(msgspec.Struct, frozen=True, kw_only=True):
    """Prices are by token: there are no classes."""


class ModelCatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    providers: list[str]
    price_classes: list[NoPriceClass]
    model_settings: list[ModelSetting]


Link: TypeAlias = Any
"""From a generation and an artifact's id to its signed address."""


def image_job(body: ImageGenerationRequest) -> control.ImageJob:
    """The job that a body describes."""
    inputs = [*_inputs(body)]
    request = ImageRequest(
        model="",
        prompt=body.prompt.strip(),
        inputs=sum(item.role == "input" for item in inputs),
        mask=body.mask_image is not UNSET,
        objects=body.objects_image is not UNSET,
        resolution=body.resolution or None,
        dimensions=(body.dimensions.width, body.dimensions.height) if body.dimensions else None,
        aspect_ratio=body.aspect_ratio or None,
        format=body.format or None,
        quality=body.quality or None,
        settings=body.model_settings or {},
    )
    return control.ImageJob(
        model=body.model,
        request=request,
        webhook_url=body.webhook_url,
        inputs=tuple(inputs),
        providers=tuple(body.providers) if body.providers else None,
    )


def _inputs(body: ImageGenerationRequest) -> list[control.ImageInput]:
    found = []
    if body.input_images:
        found += [_input(one, f"input_images[{index}]", "input") for index, one in enumerate(body.input_images)]
    if body.input_image:
        found.append(_input(body.input_image, "input_image", "input"))
    if body.mask_image:
        found.append(_input(body.mask_image, "mask_image", "mask"))
    if body.objects_image:
        found.append(_input(body.objects_image, "objects_image", "objects"))
    return found


def _input(value: InputImage, place: str, role: Literal["input", "mask", "objects"]) -> control.ImageInput:
    return control.ImageInput(kind=value.type, payload=value.payload, place=place, role=role)


def accepted(value: control.Generation) -> ImageGenerationAccepted:
    """As the wire shows one that was just taken."""
    return ImageGenerationAccepted(
        id=value.id,
        status="accepted",
        provider=value.provider,
        initial_provider=value.provider,
        routed=False,
        model=value.model,
        webhook_url=value.webhook_url,
        status_url=f"{value.origin}{PREFIX}/images/generations/{value.id}",
        created_at=moment(value.created_at),
        expires_at=moment(value.expires_at),
    )


def generation_status(value: control.Generation, secret: bytes, origin: str) -> ImageGenerationStatus:
    """As the wire shows it now. secret: signs the addresses of its pictures."""
    base = f"{origin}{PREFIX}"
    files = [
        ImageFile(
            artifact_id=file.artifact_id,
            mime_type=file.mime_type,
            size=file.size,
            download_url=control.artifact_url(secret, base, value, file.artifact_id),
        )
        for file in value.files
    ]
    over = value.completed_at is not None and value.submitted_at is not None
    return ImageGenerationStatus(
        id=value.id,
        status=value.status,  # type: ignore[arg-type]  # the table's own check holds it to these
        provider=value.provider,
        initial_provider=value.provider,
        routed=False,
        model=value.model,
        created_at=moment(value.created_at),
        submitted_at=moment_or_none(value.submitted_at),
        completed_at=moment_or_none(value.completed_at),
        expires_at=moment(value.expires_at),
        result=UNSET if value.result is None else _result(value, files),
        error=UNSET if value.error is None else ImageError(**value.error),
        files=files or UNSET,
        price=UNSET if value.cost_usd is None else ImagePrice(amount=f"{value.cost_usd:.6f}"),
        cost_usd=UNSET if value.cost_usd is None else value.cost_usd,
        duration_ms=round(1000 * ((value.completed_at or 0) - (value.submitted_at or 0))) if over else UNSET,
    )


def _result(value: control.Generation, files: list[ImageFile]) -> ImageResult:
    formats = [file.mime_type.partition("/")[2] for file in files]
    images = [
        MadeImage(mime_type=file.mime_type, source_url=file.download_url, format=kind)
        for file, kind in zip(files, formats, strict=True)
    ]
    return ImageResult(
        model=value.model,
        provider=value.provider,
        prompt=value.request["wish"]["prompt"],
        images=images,
        format=formats[0] if formats else None,
        warnings=(value.result or {}).get("warnings", []),
    )


def image_upload(value: control.Upload) -> ImageUpload:
    """As the wire shows it."""
    return ImageUpload(
        id=value.id,
        mime_type=value.mime_type,
        size=value.size,
        original_filename=value.name,
        expires_at=moment(value.expires_at),
        created_at=moment(value.created_at),
    )


def entry(spec: ModelSpec, settings: tuple[ImageSetting, ...]) -> ModelCatalogEntry:
    """A model of the catalogue."""
    return ModelCatalogEntry(
        model=spec.name,
        providers=[spec.engine],
        price_classes=[],
        model_settings=[
            ModelSetting(
                key=setting.key,
                providers=[spec.engine],
                default=setting.default,
                enum=list(setting.choices) or None,
            )
            for setting in settings
        ],
    )


_BODY = 32 * 1024 * 1024


def webhook_data(secret: bytes, generation: control.Generation) -> dict[str, Any]:
    """What a webhook says of a generation."""
    told: dict[str, Any] = msgspec.to_builtins(generation_status(generation, secret, generation.origin))
    return told


async def create(request: Request) -> Response:
    job = image_job(request.body)
    made = await control.create(request.caller.control, request.caller.user_id, job, request.origin)
    return data(accepted(made), 202)


async def get(request: Request) -> Response:
    found = await control.get(request.caller.control, request.caller.user_id, request.params["record"])
    return data(generation_status(found, request.caller.control.catalogue.current.secret, request.origin))


async def upload(request: Request) -> Response:
    form = FileForm(request, control.MAX_UPLOAD)
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            received = await uploads.receive(request.caller.control, form.pieces())
    except TimeoutError:
        raise GatewayError(Reason.BODY_TOO_SLOW, seconds=int(UPLOAD_SECONDS)) from None
    except GatewayError as error:
        if error.code is not Code.TOO_LARGE:
            raise
        raise error.at("file", code=Code.INVALID_REQUEST) from None
    return data(
        image_upload(await control.upload(request.caller.control, request.caller.user_id, form.name, received)), 201
    )


async def models(request: Request) -> Response:
    return data([entry(spec, settings) for spec, settings in control.models(request.caller.control)])


async def artifact(request: Request) -> Stream:
    query = read_query(request, ArtifactQuery)
    kept, file = await control.artifact(
        request.caller.control, query.generation, query.artifact, query.expires, query.signature
    )
    ending = kept.mime_type.partition("/")[2].partition("+")[0]
    headers = (
        *attachment(f"{kept.artifact_id}.{ending}", kept.mime_type, kept.size),
        (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; sandbox"),
    )
    return deliver(file, headers, kept.size)


OPERATIONS = (
    Operation(
        "createImageGeneration",
        "POST",
        "/images/generations",
        create,
        "Order a picture. It is made afterwards; the webhook tells, and the status address shows, when it is there.",
        body=ImageGenerationRequest,
        result=ImageGenerationAccepted,
        wrapped=True,
        status=202,
        per_minute=30,
        max_body=_BODY,
    ),
    Operation(
        "getImageGeneration",
        "GET",
        "/images/generations/{record}",
        get,
        "How far a picture is; its files have signed addresses. It is forgotten two hours after it was ordered.",
        result=ImageGenerationStatus,
        wrapped=True,
    ),
    Operation(
        "uploadImage",
        "POST",
        "/images/uploads",
        upload,
        "Keep a picture (png, jpeg, webp, gif; at most 10,240 KB) for one generation, for two hours.",
        result=ImageUpload,
        wrapped=True,
        status=201,
        per_minute=20,
        upload=True,
    ),
    Operation(
        "listImageModels",
        "GET",
        "/images/models",
        models,
        "The models that make pictures, and what they can be told.",
        result=list[ModelCatalogEntry],
        wrapped=True,
    ),
    Operation(
        "downloadArtifact",
        "GET",
        "/artifacts/download",
        artifact,
        "A picture, by its signed address.",
        public=True,
        query=ArtifactQuery,
        produces="application/octet-stream",
        refuses=(403, 404),
    ),
)
