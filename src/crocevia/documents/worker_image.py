"""Decodes one picture and writes it again, upright and bare. Runs only inside the worker process."""

from __future__ import annotations

import io
import warnings

from PIL import Image, ImageOps, UnidentifiedImageError

from crocevia.core.errors import Reason
from crocevia.documents.jobs import Refusal

_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "HEIF")


def convert(data: bytes, options: dict[str, int]) -> bytes:
    """A JPEG (a PNG where there is transparency) without metadata. options: max_pixels, max_side."""
    warnings.simplefilter("error")
    Image.MAX_IMAGE_PIXELS = options["max_pixels"]
    try:
        return _written(_decoded(data, options["max_side"]))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise Refusal(Reason.IMAGE_PIXELS, limit=options["max_pixels"]) from None
    except (OSError, ValueError, SyntaxError, EOFError, UnidentifiedImageError, RuntimeError):
        raise Refusal(Reason.IMAGE_DAMAGED) from None


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
