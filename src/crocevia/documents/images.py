"""Photos: measured from their header, passed on as they are where they fit and tell nothing, else through a worker."""

from __future__ import annotations

from crocevia.core.errors import GatewayError, Reason
from crocevia.documents.headers import Header, read_header
from crocevia.documents.jobs import Job
from crocevia.documents.sniff import HEIF, sniff
from crocevia.documents.workers import Share, Workers

_MEMORY = 1 << 30
_SECONDS = 10
# Where metadata of any kind may begin. One that is found by chance costs a worker's time and nothing else.
_MARKS = (b"Exif", b"EXIF", b"eXIf", b"ns.adobe.com/x", b"Photoshop 3.0", b"tEXt", b"zTXt", b"iTXt", b"XMP ")


async def prepare_photo(
    workers: Workers | Share, data: bytes, media_type: str, *, max_pixels: int, max_side: int
) -> tuple[str, bytes]:
    """The (media type, bytes) to send for a photo of a detected type: upright, and silent on where and how it was made.

    JPEG, PNG, GIF and WebP within `max_side` come back as they are where they have no metadata, else without it. What
    must be turned, HEIC, HEIF and the rest are decoded, turned, shrunk to `max_side` and written without metadata, as
    JPEG (PNG where there is transparency). Raises GatewayError(INVALID_REQUEST): damaged, or more than `max_pixels`.
    """
    header = measure(data, media_type, max_pixels)
    fits = max(header.width, header.height) <= max_side
    if media_type not in HEIF and fits and not any(mark in data for mark in _MARKS):
        return media_type, data
    options = {"max_pixels": max_pixels, "max_side": max_side}
    job = Job(operation="image_convert", options=options, memory=_MEMORY, seconds=_SECONDS)
    written = await workers.run(job, data, bytes, max_output=4 * max_side * max_side + (1 << 16))
    return sniff(written) or media_type, written


def measure(data: bytes, media_type: str, max_pixels: int) -> Header:
    """The header of a photo, read without decoding it. Raises GatewayError(INVALID_REQUEST)."""
    try:
        header = read_header(data, media_type)
    except ValueError:
        raise GatewayError(Reason.IMAGE_DAMAGED) from None
    if header.width * header.height > max_pixels:
        raise GatewayError(Reason.IMAGE_PIXELS, limit=max_pixels)
    return header
