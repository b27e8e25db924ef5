"""The bytes of what messages carry, as a model can be given them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import Message, Part, TextPart
from crocevia.core.turn.files import filled, named
from crocevia.documents.intake import RESPONSES, Attachment
from crocevia.runtime.control import chat_attachments
from crocevia.runtime.control.context import Control
from crocevia.runtime.gateway import Gateway
from crocevia.runtime.intake import Wants

# No engine hears or watches anything; what these have as text or pages, every engine can read.
_READABLE: Final = frozenset({"text/markdown", "text/plain", "text/csv", "application/pdf"})
_LIMITS: Final = msgspec.structs.replace(RESPONSES, max_count=1, max_urls=0)


async def fill(
    control: Control, gateway: Gateway, user_id: str, model: str, messages: tuple[Message, ...]
) -> tuple[Message, ...]:
    """The messages with their files. One that was deleted is told of. Raises GatewayError."""
    parts = {which: await _parts(control, gateway, user_id, model, which) for which in named(messages)}

    def of(which: str, name: str) -> Sequence[Part]:
        return parts[which] or (TextPart(text=f"[the attached file {name} was deleted]"),)

    return filled(messages, of) if parts else messages


async def check(control: Control, gateway: Gateway, user_id: str, model: str, ids: Sequence[str]) -> None:
    """Read the files as the model will be given them, before it is asked anything.

    Raises GatewayError(INVALID_REQUEST) that names the one that cannot be read.
    """
    for index, which in enumerate(ids):
        try:
            await _parts(control, gateway, user_id, model, which)
        except GatewayError as error:
            raise error.at(f"attachment_ids[{index}]") from None


async def _parts(control: Control, gateway: Gateway, user_id: str, model: str, which: str) -> tuple[Part, ...]:
    """Nothing if the file is not there any more."""
    found = await chat_attachments.read(control, user_id, which)
    if found is None:
        return ()
    attachment, data = found
    if attachment.mime_type not in _READABLE:
        raise GatewayError(Reason.ATTACHMENT_UNHEARD, type=attachment.mime_type)
    given = Attachment(
        param="attachment",
        data=base64.b64encode(data).decode(),
        media_type=attachment.mime_type,
        name=attachment.name,
    )
    limits = msgspec.structs.replace(_LIMITS, document_bytes=control.limits.attachment_bytes)
    wants = Wants(tenant=f"user:{user_id}", documents=True, images=True, limits=limits)
    (taken,) = await gateway.read_files(model, (given,), wants)
    return taken.parts
