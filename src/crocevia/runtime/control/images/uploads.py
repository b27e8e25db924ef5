"""Uploaded input pictures."""

from __future__ import annotations

import asyncio
from typing import Final

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.runtime.control.context import Control
from crocevia.runtime.files.blobs import Blobs, Received
from crocevia.runtime.image_generation.inputs import ACCEPTED_UPLOADS, LIFE_SECONDS, picture
from crocevia.storage import images as rows
from crocevia.storage.database import Transaction
from crocevia.storage.images import Upload

MAX_UPLOAD: Final = 10_240 * 1024
QUOTA: Final = 200 * 1024 * 1024  # bytes of one user


async def upload(control: Control, user_id: str, name: str, received: Received) -> Upload:
    """Store a picture for one generation, for two hours. Raises GatewayError(INVALID_REQUEST)."""
    blobs = Blobs(control.home.files)
    try:
        mime_type = await asyncio.to_thread(lambda: picture(received.aside.read_bytes(), ACCEPTED_UPLOADS).media_type)
        now = control.clock()
        made = Upload(
            id=new_id("upl"),
            user_id=user_id,
            name=name,
            mime_type=mime_type,
            size=received.size,
            created_at=now,
            expires_at=now + LIFE_SECONDS,
        )
        await asyncio.to_thread(blobs.keep, "uploads", made.id, received)
        try:
            await control.database.write(lambda tx: _add_upload(tx, made, now))
        except BaseException:
            blobs.remove("uploads", made.id)
            raise
        return made
    except GatewayError as error:
        raise error.at("file") from None
    finally:
        blobs.discard(received)


def _add_upload(tx: Transaction, made: Upload, now: float) -> None:
    if rows.held(tx, made.user_id, now) + made.size > QUOTA:
        raise GatewayError(Reason.UPLOADS_QUOTA, param="file")
    rows.add_upload(tx, made)
