"""The stored form of a generation's request, and its input pictures."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Any, Final, Literal

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.core.images import ImageRequest, Picture
from crocevia.documents.fetch import Fetcher, FetchPolicy
from crocevia.documents.images import measure
from crocevia.documents.sniff import sniff
from crocevia.runtime.files.blobs import Blobs

LIFE_SECONDS: Final = 7200.0  # of an upload, a generation and the addresses of what it made
MAX_PIXELS: Final = 100_000_000
BUDGET: Final = 50 * 1024 * 1024  # bytes of all inputs of one generation
ACCEPTED: Final = frozenset({"image/png", "image/jpeg", "image/webp"})
ACCEPTED_UPLOADS: Final = ACCEPTED | {"image/gif"}
FETCH_POLICY: Final = FetchPolicy(
    schemes=("https", "http"), accepted_types=tuple(sorted(ACCEPTED)), max_bytes=10 * 1024 * 1024
)

Role = Literal["input", "mask", "objects"]


class ImageInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input picture as the caller gave it."""

    kind: Literal["url", "base64", "upload_id"]
    payload: str
    place: str
    """The field of the request that it came in, for errors."""
    role: Role = "input"

    def __repr__(self) -> str:
        return f"ImageInput({self.kind}, {self.place})"


class StoredInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input as the job's row keeps it."""

    kind: Literal["url", "uploads", "inputs"]
    where: str
    """A URL, the id of an upload, or the id of bytes stored for this generation."""
    role: Role


class StoredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's row keeps of its request."""

    request: ImageRequest = msgspec.field(name="wish")
    """The stored key is that of the first version."""
    inputs: tuple[StoredInput, ...] = ()


def read_request(value: Any) -> StoredRequest:
    """Read back what `msgspec.to_builtins` made of a `StoredRequest`."""
    return msgspec.convert(value, StoredRequest)


def picture(data: bytes, accepted: frozenset[str] = ACCEPTED) -> Picture:
    """Detect the type of the bytes, whatever the caller called them. Raises GatewayError(INVALID_REQUEST)."""
    found = sniff(data)
    if found is None or found not in accepted:
        raise GatewayError(Reason.TYPE_NOT_ACCEPTED, type=found or "application/octet-stream")
    measure(data, found, MAX_PIXELS)
    return Picture(found, data)


async def store_input(item: ImageInput, blobs: Blobs, fetcher: Fetcher) -> tuple[StoredInput, int]:
    """Check an input and store its bytes; returns it with its size, 0 where that is not known yet.

    Raises GatewayError(INVALID_REQUEST) that names the field.
    """
    try:
        if item.kind == "url":
            await fetcher.check(item.payload, FETCH_POLICY)
            return StoredInput(kind="url", where=item.payload, role=item.role), 0
        if item.kind == "upload_id":
            return StoredInput(kind="uploads", where=item.payload, role=item.role), 0
        data = await asyncio.to_thread(_decoded, item.payload)
    except GatewayError as error:
        raise error.at(f"{item.place}.payload") from None
    name = new_id("inp")
    await asyncio.to_thread(blobs.put, "inputs", name, data)
    return StoredInput(kind="inputs", where=name, role=item.role), len(data)


async def load_input(stored: StoredInput, blobs: Blobs, fetcher: Fetcher) -> Picture:
    """The picture itself, fetched or read. Raises GatewayError."""
    if stored.kind == "url":
        return picture((await fetcher.fetch(stored.where, FETCH_POLICY)).data)

    def read() -> bytes:
        with blobs.open(stored.kind, stored.where) as file:
            return file.read()

    return picture(await asyncio.to_thread(read), ACCEPTED_UPLOADS)


def _decoded(payload: str) -> bytes:
    if payload.startswith("data:"):
        head, _, payload = payload.partition(",")
        if not head.endswith(";base64"):
            raise GatewayError(Reason.BASE64_MALFORMED)
    try:
        data = base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise GatewayError(Reason.BASE64_MALFORMED) from None
    return picture(data).data
