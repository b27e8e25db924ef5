"""Image jobs: accepted here, generated in the background."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.core.images import ImageRequest, ImageSetting
from crocevia.runtime.catalogue import generates_images
from crocevia.runtime.control.context import Control, missing
from crocevia.runtime.delivery import POLICY
from crocevia.runtime.files.blobs import Blobs
from crocevia.runtime.image_generation.inputs import (
    BUDGET,
    LIFE_SECONDS,
    ImageInput,
    StoredInput,
    StoredRequest,
    store_input,
)
from crocevia.runtime.image_generation.jobs import ImageJobs
from crocevia.storage import images as rows
from crocevia.storage.database import Transaction
from crocevia.storage.images import Generation

MOST_OPEN: Final = 100  # generations of one user that wait or run


class ImageJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as a caller describes it."""

    model: str
    """The catalogue's name for it."""
    request: ImageRequest
    """Its `model` is filled in when the job is accepted."""
    webhook_url: str
    inputs: tuple[ImageInput, ...] = ()
    providers: tuple[str, ...] | None = None
    """Names of the engines that may do it; None: any."""


def models(control: Control) -> list[tuple[ModelSpec, tuple[ImageSetting, ...]]]:
    """The models that generate images, with their settings."""
    known = control.catalogue.current
    found = []
    for spec in known.models.values():
        if generates_images(known, spec):
            try:
                found.append((spec, _jobs(control).generator.settings(spec)))
            except GatewayError:  # its engine cannot be used now
                found.append((spec, ()))
    return found


async def create(control: Control, user_id: str, job: ImageJob, origin: str) -> Generation:
    """Accept a job; its images are generated in the background.

    Raises GatewayError: INVALID_REQUEST, UNSUPPORTED, RATE_LIMITED, UNAVAILABLE, DRAINING.
    """
    spec = _model(control, job)
    request = msgspec.structs.replace(job.request, model=spec.upstream)
    jobs = _jobs(control)
    jobs.generator.check(spec, request)
    fetcher, blobs = jobs.fetcher, Blobs(control.home.files)
    try:
        await fetcher.check(job.webhook_url, POLICY)
    except GatewayError as error:
        raise error.at("webhook_url") from None
    kept: list[StoredInput] = []
    size = 0
    try:
        for item in job.inputs:
            one, more = await store_input(item, blobs, fetcher)
            kept.append(one)
            size += more
            if size > BUDGET:
                raise GatewayError(Reason.IMAGES_BUDGET, param=item.place)
        now = control.clock()
        made = Generation(
            id=new_id("igr"),
            user_id=user_id,
            model=spec.name,
            provider=spec.engine,
            status="accepted",
            request=msgspec.to_builtins(StoredRequest(request=request, inputs=tuple(kept))),
            origin=origin,
            created_at=now,
            expires_at=now + LIFE_SECONDS,
            webhook_url=job.webhook_url,
        )
        places = [item.place for item in job.inputs]
        await control.database.write(lambda tx: _add(tx, made, kept, places, size))
    except BaseException:
        for one in kept:
            if one.kind == "inputs":
                blobs.remove("inputs", one.where)
        raise
    jobs.begin(made)
    return made


async def get(control: Control, user_id: str, generation_id: str) -> Generation:
    """Raises GatewayError(NOT_FOUND)."""
    found = await control.database.read(lambda tx: rows.find(tx, generation_id))
    if found is None or found.user_id != user_id or found.expires_at <= control.clock():
        raise missing("generation")
    return found


def _jobs(control: Control) -> ImageJobs:
    if control.images is None:
        raise GatewayError(Reason.UNAVAILABLE)
    return control.images


def _model(control: Control, job: ImageJob) -> ModelSpec:
    known = control.catalogue.current
    spec = known.models.get(job.model)
    if spec is None or not generates_images(known, spec):
        raise GatewayError(Reason.IMAGE_MODEL_UNKNOWN, param="model")
    if job.providers is not None and spec.engine not in job.providers:
        raise GatewayError(Reason.IMAGE_PROVIDER_OTHER, param="providers", provider=spec.engine)
    return spec


def _add(tx: Transaction, made: Generation, kept: list[StoredInput], places: list[str], size: int) -> None:
    if rows.count_unfinished(tx, made.user_id) >= MOST_OPEN:
        raise GatewayError(Reason.TOO_MANY_REQUESTS, retry_after=10, seconds=10)
    for one, place in zip(kept, places, strict=True):
        if one.kind != "uploads":
            continue
        found = rows.upload(tx, made.user_id, one.where)
        usable = found is not None and found.expires_at > made.created_at
        if found is None or not usable or not rows.bind_upload(tx, one.where, made.id):
            raise GatewayError(Reason.UPLOAD_MISSING, param=f"{place}.payload")
        size += found.size
        if size > BUDGET:
            raise GatewayError(Reason.IMAGES_BUDGET, param=place)
    rows.add(tx, made)
