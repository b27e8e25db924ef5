"""The scripted engine with a brush: a small square whose colour follows from the prompt. Models whose upstream id is
`image` are its image models; a script's delays and failures hold for them too.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Final

from crocevia.core.calls import ModelRequest
from crocevia.core.images import ImageRequest, Picture
from crocevia.core.messages import user

SIDE: Final = 64
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"


def as_call(request: ImageRequest) -> ModelRequest:
    """The wish as the call that a script's rules know."""
    return ModelRequest(model=request.model, messages=(user(request.prompt),))


def square(request: ImageRequest, inputs: tuple[Picture, ...], mask: Picture | None) -> Picture:
    """The same picture for the same wish."""
    digest = hashlib.sha256(request.prompt.encode())
    for picture in (*inputs, *([mask] if mask is not None else [])):
        digest.update(picture.data)
    width, height = request.dimensions or (SIDE, SIDE)
    return Picture("image/png", _png(min(width, 1024), min(height, 1024), digest.digest()[:3]))


def _png(width: int, height: int, colour: bytes) -> bytes:
    rows = (b"\0" + colour * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
