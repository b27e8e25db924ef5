"""Orders of pictures, which are painted afterwards."""

from __future__ import annotations

from typing import Final

import msgspec

from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import Code, GatewayError, say
from crocevia.core.ids import new_id
from crocevia.core.images import ImageSetting, ImageWish
from crocevia.runtime.catalogue import paints
from crocevia.runtime.control.context import Control, invalid, missing
from crocevia.runtime.delivery import POLICY
from crocevia.runtime.files.blobs import Blobs
from crocevia.runtime.painting.inputs import BUDGET, LIFE_SECONDS, Input, Kept, Request, keep
from crocevia.runtime.painting.work import ImageWork
from crocevia.storage import images as rows
from crocevia.storage.database import Transaction
from crocevia.storage.images import Generation

MOST_OPEN: Final = 100  # generations of one user that wait or run


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for. wish: without the provider's name of the model. providers None: any."""

    model: str
    wish: ImageWish
    webhook_url: str
    inputs: tuple[Input, ...] = ()
    providers: tuple[str, ...] | None = None


def models(control: Control) -> list[tuple[ModelSpec, tuple[ImageSetting, ...]]]:
    """The models that paint, with what they can be told."""
    known = control.catalogue.current
    found = []
    for spec in known.models.values():
        if paints(known, spec):
            try:
                found.append((spec, _work(control).painting.settings(spec)))
            except GatewayError:  # its engine cannot be used now
                found.append((spec, ()))
    return found


async def create(control: Control, user_id: str, order: Order, origin: str) -> Generation:
    """Take an order; the picture is made afterwards.

    Raises GatewayError: INVALID_REQUEST, UNSUPPORTED, RATE_LIMITED, UNAVAILABLE, DRAINING.
    """
    spec = _model(control, order)
    wish = msgspec.structs.replace(order.wish, model=spec.upstream)
    work = _work(control)
    work.painting.check(spec, wish)
    fetcher, blobs = work.fetcher, Blobs(control.home.files)
    try:
        await fetcher.check(order.webhook_url, POLICY)
    except GatewayError as error:
        raise GatewayError(error.code, error.message, param="webhook_url") from None
    kept: list[Kept] = []
    size = 0
    try:
        for item in order.inputs:
            one, more = await keep(item, blobs, fetcher)
            kept.append(one)
            size += more
            if size > BUDGET:
                raise invalid(item.place, "images_budget")
        now = control.clock()
        made = Generation(
            id=new_id("igr"),
            user_id=user_id,
            model=spec.name,
            provider=spec.engine,
            status="accepted",
            request=msgspec.to_builtins(Request(wish=wish, inputs=tuple(kept))),
            origin=origin,
            created_at=now,
            expires_at=now + LIFE_SECONDS,
            webhook_url=order.webhook_url,
        )
        places = [item.place for item in order.inputs]
        await control.database.write(lambda tx: _add(tx, made, kept, places, size))
    except BaseException:
        for one in kept:
            if one.kind == "inputs":
                blobs.remove("inputs", one.where)
        raise
    work.begin(made)
    return made


async def get(control: Control, user_id: str, generation_id: str) -> Generation:
    """Raises GatewayError(NOT_FOUND)."""
    found = await control.database.read(lambda tx: rows.find(tx, generation_id))
    if found is None or found.user_id != user_id or found.expires_at <= control.clock():
        raise missing("generation")
    return found


def _work(control: Control) -> ImageWork:
    if control.images is None:
        raise GatewayError(Code.UNAVAILABLE)
    return control.images


def _model(control: Control, order: Order) -> ModelSpec:
    known = control.catalogue.current
    spec = known.models.get(order.model)
    if spec is None or not paints(known, spec):
        raise invalid("model", "image_model_unknown")
    if order.providers is not None and spec.engine not in order.providers:
        raise invalid("providers", "image_provider_other", provider=spec.engine)
    return spec


def _add(tx: Transaction, made: Generation, kept: list[Kept], places: list[str], size: int) -> None:
    if rows.count_unfinished(tx, made.user_id) >= MOST_OPEN:
        raise GatewayError(Code.RATE_LIMITED, say("too_many_requests", seconds=10), retry_after=10)
    for one, place in zip(kept, places, strict=True):
        if one.kind != "uploads":
            continue
        found = rows.upload(tx, made.user_id, one.where)
        usable = found is not None and found.expires_at > made.created_at
        if found is None or not usable or not rows.bind_upload(tx, one.where, made.id):
            raise invalid(f"{place}.payload", "upload_missing")
        size += found.size
        if size > BUDGET:
            raise invalid(place, "images_budget")
    rows.add(tx, made)
