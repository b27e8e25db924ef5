"""Pictures: uploads, generations, the models that make them, and signed addresses."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from crocevia.asgi.body import UPLOAD_SECONDS
from crocevia.asgi.fields import read_query
from crocevia.asgi.http import Operation, Response, Stream, data
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.delivery import attachment, deliver
from crocevia.doors.atp.form import FileForm
from crocevia.doors.atp.wire import images as wire
from crocevia.runtime.control import images, uploads

_BODY = 32 * 1024 * 1024


def webhook_data(secret: bytes, generation: images.Generation) -> dict[str, Any]:
    """What a webhook says of a generation."""
    told: dict[str, Any] = msgspec.to_builtins(wire.status(generation, secret, generation.origin))
    return told


async def create(request: Request) -> Response:
    job = wire.job(request.body)
    made = await images.create(request.caller.control, request.caller.user_id, job, request.origin)
    return data(wire.accepted(made), 202)


async def get(request: Request) -> Response:
    found = await images.get(request.caller.control, request.caller.user_id, request.params["record"])
    return data(wire.status(found, request.caller.control.catalogue.current.secret, request.origin))


async def upload(request: Request) -> Response:
    form = FileForm(request, images.MAX_UPLOAD)
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
        wire.upload(await images.upload(request.caller.control, request.caller.user_id, form.name, received)), 201
    )


async def models(request: Request) -> Response:
    return data([wire.entry(spec, settings) for spec, settings in images.models(request.caller.control)])


async def artifact(request: Request) -> Stream:
    query = read_query(request, wire.ArtifactQuery)
    kept, file = await images.artifact(
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
        body=wire.ImageGenerationRequest,
        result=wire.ImageGenerationAccepted,
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
        result=wire.ImageGenerationStatus,
        wrapped=True,
    ),
    Operation(
        "uploadImage",
        "POST",
        "/images/uploads",
        upload,
        "Keep a picture (png, jpeg, webp, gif; at most 10,240 KB) for one generation, for two hours.",
        result=wire.ImageUpload,
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
        result=list[wire.ModelCatalogEntry],
        wrapped=True,
    ),
    Operation(
        "downloadArtifact",
        "GET",
        "/artifacts/download",
        artifact,
        "A picture, by its signed address.",
        public=True,
        query=wire.ArtifactQuery,
        produces="application/octet-stream",
        refuses=(403, 404),
    ),
)
