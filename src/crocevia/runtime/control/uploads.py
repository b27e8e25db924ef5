"""Files on their way in."""

from __future__ import annotations

from collections.abc import AsyncIterator

from crocevia.runtime.control.context import Control
from crocevia.runtime.files.blobs import Blobs, Received

__all__ = ["Received", "receive"]


async def receive(control: Control, pieces: AsyncIterator[bytes]) -> Received:
    """Bytes on the disk that are nobody's yet. Whatever `pieces` raises leaves nothing behind. Raises UNAVAILABLE."""
    return await Blobs(control.home.files).receive(pieces)
