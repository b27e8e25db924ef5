"""Decodes one picture and writes it again, upright and bare. Runs only inside the worker process."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable

from PIL import Image, ImageOps, UnidentifiedImageError

from crocevia.core.errors import Reason
from crocevia.documents.jobs import Refusal

_ORIENTATION = 0x0112
_SCAN, _COMMENT = 0xDA, 0xFE
_COLOURS = (0xE0, 0xE2, 0xEE)  # JFIF, ICC, Adobe
_TELLS = 0x08 | 0x04  # the flags of EXIF and XMP in an extended WebP
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "HEIF")


def convert(data: bytes, options: dict[str, int]) -> bytes:
    """The picture without metadata: as it was, or as a JPEG (a PNG where there is transparency).

    options: max_pixels, max_side.
    """
    warnings.simplefilter("error")
    Image.MAX_IMAGE_PIXELS = options["max_pixels"]
    try:
        return _as_it_was(data, options["max_side"]) or _written(_decoded(data, options["max_side"]))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise Refusal(Reason.IMAGE_PIXELS, limit=options["max_pixels"]) from None
    except (OSError, ValueError, SyntaxError, EOFError, UnidentifiedImageError, RuntimeError, KeyError, IndexError):
        raise Refusal(Reason.IMAGE_DAMAGED) from None


def _as_it_was(data: bytes, max_side: int) -> bytes | None:
    """The same picture, not written anew, without its metadata; None where it must be turned, shrunk or converted."""
    if data[4:8] == b"ftyp":
        return None
    with Image.open(io.BytesIO(data), formats=_FORMATS[:-1]) as picture:
        if max(picture.size) > max_side or picture.getexif().get(_ORIENTATION, 1) != 1:
            return None
        picture.load()
        bare = _BARE[picture.format or ""](data)
    return None if b"Exif\0\0" in bare else bare


def _bare_jpeg(data: bytes) -> bytes:
    """Without application segments but the ones that say how colours are meant, and without comments."""
    kept, at = [data[:2]], 2
    while data[at] == 0xFF and data[at + 1] != _SCAN:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] in _COLOURS or not (0xE0 <= data[at + 1] <= 0xEF or data[at + 1] == _COMMENT):
            kept.append(data[at:end])
        at = end
    return b"".join([*kept, data[at:]])


def _bare_png(data: bytes) -> bytes:
    kept, at, kind = [data[:8]], 8, b""
    while kind != b"IEND":
        end, kind = at + 12 + int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if not kind:
            raise ValueError("no end")
        if kind not in (b"eXIf", b"tEXt", b"zTXt", b"iTXt", b"tIME"):
            kept.append(data[at:end])
        at = end
    return b"".join(kept)


def _bare_webp(data: bytes) -> bytes:
    kept, at = [], 12
    while at + 8 <= len(data):
        end = at + 8 + (size := int.from_bytes(data[at + 4 : at + 8], "little")) + size % 2
        chunk = data[at:end]
        if chunk[:4] == b"VP8X":
            chunk = chunk[:8] + bytes([chunk[8] & ~_TELLS & 0xFF]) + chunk[9:]
        if chunk[:4] not in (b"EXIF", b"XMP "):
            kept.append(chunk)
        at = end
    body = b"WEBP" + b"".join(kept)
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def _decoded(data: bytes, max_side: int) -> Image.Image:
    if data[4:8] == b"ftyp":
        import pi_heif

        pi_heif.options.DECODE_THREADS = 1
        pi_heif.options.THUMBNAILS = False
        pi_heif.register_heif_opener()
    picture: Image.Image = Image.open(io.BytesIO(data), formats=_FORMATS if data[4:8] == b"ftyp" else _FORMATS[:-1])
    picture.draft(None, (max_side, max_side))  # a JPEG can be decoded small in the first place
    picture.load()
    if picture.mode == "P":  # a palette cannot be resampled
        picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    picture.thumbnail((max_side, max_side))
    return ImageOps.exif_transpose(picture)


def _written(picture: Image.Image) -> bytes:
    out = io.BytesIO()
    if picture.has_transparency_data:
        bare = picture.convert("RGBA")
        bare.info.clear()
        bare.save(out, "PNG")
    else:
        bare = picture.convert("RGB")
        bare.info.clear()
        bare.save(out, "JPEG", quality=90)
    return out.getvalue()


_BARE: dict[str, Callable[[bytes], bytes]] = {
    "JPEG": _bare_jpeg,
    "MPO": _bare_jpeg,
    "PNG": _bare_png,
    "WEBP": _bare_webp,
    "GIF": bytes,
}
