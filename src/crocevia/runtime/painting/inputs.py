"""What a generation was asked for, at rest; and the pictures that it begins with."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Any, Final, Literal

import msgspec

from crocevia.core.errors import Code, GatewayError, Message, say
from crocevia.core.ids import new_id
from crocevia.core.images import ImageWish, Picture
from crocevia.documents.fetch import Fetcher, FetchPolicy
from crocevia.documents.images import measure
from crocevia.documents.sniff import sniff
from crocevia.runtime.files.blobs import Blobs

LIFE_SECONDS: Final = 7200.0  # of an upload, a generation and the addresses of what it made
MAX_PIXELS: Final = 100_000_000
BUDGET: Final = 50 * 1024 * 1024  # bytes of all inputs of one generation
TAKEN: Final = frozenset({"image/png", "image/jpeg", "image/webp"})
UPLOADED: Final = TAKEN | {"image/gif"}
FETCHED: Final = FetchPolicy(schemes=("https", "http"), accepted_types=tuple(sorted(TAKEN)), max_bytes=10 * 1024 * 1024)

Role = Literal["input", "mask", "objects"]


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """place: the field of the request."""

    kind: Literal["url", "base64", "upload_id"]
    payload: str
    place: str
    role: Role = "input"

    def __repr__(self) -> str:
        return f"Input({self.kind}, {self.place})"


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """An input at rest. where: an address, the id of an upload, or of bytes kept for this generation."""

    kind: Literal["url", "uploads", "inputs"]
    where: str
    role: Role


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An order at rest."""

    wish: ImageWish
    inputs: tuple[Kept, ...] = ()


def described(value: Any) -> Request:
    """A stored request as it was."""
    request: Request = msgspec.convert(value, Request)
    return request


def picture(data: bytes, taken: frozenset[str] = TAKEN) -> Picture:
    """Bytes by what they are, whatever they were called. Raises GatewayError(INVALID_REQUEST)."""
    found = sniff(data)
    if found is None or found not in taken:
        raise GatewayError(Code.INVALID_REQUEST, say("type_not_accepted", type=found or "application/octet-stream"))
    measure(data, found, MAX_PIXELS)
    return Picture(found, data)


async def keep(item: Input, blobs: Blobs, fetcher: Fetcher) -> tuple[Kept, int]:
    """Check an input and put it where it waits; with its size as far as it is known.

    Raises GatewayError(INVALID_REQUEST) that names the field.
    """
    try:
        if item.kind == "url":
            await fetcher.check(item.payload, FETCHED)
            return Kept(kind="url", where=item.payload, role=item.role), 0
        if item.kind == "upload_id":
            return Kept(kind="uploads", where=item.payload, role=item.role), 0
        data = await asyncio.to_thread(_decoded, item.payload)
    except GatewayError as error:
        raise GatewayError(error.code, error.message, param=f"{item.place}.payload") from None
    name = new_id("inp")
    await asyncio.to_thread(blobs.put, "inputs", name, data)
    return Kept(kind="inputs", where=name, role=item.role), len(data)


async def load(kept: Kept, blobs: Blobs, fetcher: Fetcher) -> Picture:
    """The picture itself. Raises GatewayError."""
    if kept.kind == "url":
        return picture((await fetcher.fetch(kept.where, FETCHED)).data)

    def read() -> bytes:
        with blobs.open(kept.kind, kept.where) as file:
            return file.read()

    return picture(await asyncio.to_thread(read), UPLOADED)


def _decoded(payload: str) -> bytes:
    if payload.startswith("data:"):
        head, _, payload = payload.partition(",")
        if not head.endswith(";base64"):
            raise GatewayError(Code.INVALID_REQUEST, Message("base64_malformed"))
    try:
        data = base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise GatewayError(Code.INVALID_REQUEST, Message("base64_malformed")) from None
    return picture(data).data
