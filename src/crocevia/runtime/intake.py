"""Files that come with a call: permitted, taken in as the engine wants them, and remembered for the next round.

A tool loop sends its history again at every round, files included: what was made of a file is kept for a while, so
that a round costs no second reading and the engine sees the very same bytes.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from crocevia.core.calls import Abilities, ModelRequest
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import FilePart, Message, Part, TextPart, UserMessage
from crocevia.documents.fetch import Fetcher
from crocevia.documents.intake import (
    PEPPER,
    Attachment,
    Limits,
    Prepared,
    check_count,
    clean_name,
    decode_base64,
    prepare,
)
from crocevia.documents.sniff import PHOTOS, sniff
from crocevia.documents.workers import Workers

KEPT_BYTES: Final = 64 * 1024 * 1024
URL_SECONDS: Final = 600.0  # what an address held may change; a tool loop is shorter

_STEP: Final = 1 << 20  # characters
_PENDING: Final = ""  # the media type of a placeholder


class Wants(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends files, and what they may send."""

    tenant: str
    documents: bool
    images: bool
    limits: Limits = PEPPER
    """Of the door."""


def placeholder(attachment: Attachment) -> FilePart:
    """What stands in a message until the file is taken in: the same for the same file."""
    return FilePart(kind="document", media_type=_PENDING, data=_digest(attachment), name=attachment.name or "")


def _digest(attachment: Attachment) -> bytes:
    """Of what was given. In steps: a second copy of a large file would be the most memory that a call takes."""
    digest = blake2b((attachment.url or "").encode("utf-8", "surrogatepass"), digest_size=32)
    data = attachment.data or ""
    for at in range(0, len(data), _STEP):
        digest.update(data[at : at + _STEP].encode("utf-8", "surrogatepass"))
    return digest.digest()


def fill(request: ModelRequest, taken: Sequence[Prepared]) -> ModelRequest:
    """The request with its placeholders replaced, in order."""
    left = iter(taken)
    messages = tuple(_filled(message, left.__next__) for message in request.messages)
    return msgspec.structs.replace(request, messages=messages)


def _filled(message: Message, following: Callable[[], Prepared]) -> Message:
    if not isinstance(message, UserMessage) or all(isinstance(part, TextPart) for part in message.parts):
        return message
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, FilePart) and part.media_type == _PENDING:
            parts += following().parts
        else:
            parts.append(part)
    return UserMessage(parts=tuple(parts))


def check_permission(attachment: Attachment, wants: Wants) -> None:
    """Refuse what is certain to be refused, before anything is fetched or decoded. Raises GatewayError."""
    if attachment.is_image and not wants.images:
        raise GatewayError(Reason.IMAGES_NOT_ENABLED, project=wants.tenant)
    if not attachment.is_image and not wants.documents and (attachment.media_type or not wants.images):
        raise GatewayError(Reason.DOCUMENTS_NOT_ENABLED, project=wants.tenant)


class Intake:
    """Prepares what callers attach. One per server; workers start and sockets open only when a file comes."""

    def __init__(
        self, fetcher: Fetcher | None = None, workers: Workers | None = None, *, kept_bytes: int = KEPT_BYTES
    ) -> None:
        self._fetcher = fetcher or Fetcher()
        self._workers = workers or Workers()
        self._kept = _Kept(kept_bytes)

    async def prepare(
        self, attachments: Sequence[Attachment], wants: Wants, abilities: Abilities, *, max_pages: int
    ) -> tuple[Prepared, ...]:
        """Every file as parts that the engine can be given, in order.

        Raises GatewayError: INVALID_REQUEST, DOCUMENTS_NOT_ENABLED, IMAGES_NOT_ENABLED, UNSUPPORTED, UNAVAILABLE.
        """
        limits = msgspec.structs.replace(wants.limits, max_pages=min(wants.limits.max_pages, max_pages))
        check_count(attachments, limits)
        for attachment in attachments:
            check_permission(attachment, wants)
        keys = await asyncio.to_thread(lambda: [_key(each, wants, abilities, max_pages) for each in attachments])
        found = [self._kept.get(key) for key in keys]
        new = [each for each, known in zip(attachments, found, strict=True) if known is None]
        read = await self._prepare(new, limits, abilities, wants.tenant)
        fresh = iter(read)
        whole = tuple(known if known is not None else next(fresh) for known in found)
        for attachment, key, one in zip(attachments, keys, whole, strict=True):
            _check_kind(one, wants)
            self._kept.put(key, one, URL_SECONDS if attachment.url else None)
        return whole

    async def prepare_as_text(
        self, attachments: Sequence[Attachment], limits: Limits, *, images: bool, tenant: str
    ) -> tuple[Prepared, ...]:
        """Every file in order where no engine is chosen yet: documents as text. images: the model can see pictures.
        tenant: who sends them.

        Raises GatewayError: INVALID_REQUEST (which part, and why), UNSUPPORTED, UNAVAILABLE.
        """
        return await self._prepare(attachments, limits, Abilities(images=images), tenant)

    async def recall(self, pictures: Sequence[Attachment]) -> tuple[Prepared | None, ...]:
        """Pictures that were taken in before, as they were kept; None for what was not kept as a picture's bytes.

        Nothing is fetched, and nothing is read again.
        """
        return tuple(await asyncio.to_thread(lambda: [_recalled(picture) for picture in pictures]))

    async def _prepare(
        self, attachments: Sequence[Attachment], limits: Limits, abilities: Abilities, tenant: str
    ) -> tuple[Prepared, ...]:
        return await prepare(attachments, limits, abilities, fetcher=self._fetcher, workers=self._workers.of(tenant))

    async def close(self) -> None:
        """Close sockets. Idempotent."""
        await self._fetcher.close()


def _recalled(picture: Attachment) -> Prepared | None:
    data = picture.data
    if data is None:
        label, mark, data = (picture.url or "").partition(";base64,")
        if not mark or label[:5].lower() != "data:":
            return None
    try:
        found = decode_base64(data)
    except ValueError:
        return None
    media_type = sniff(found)
    if media_type not in PHOTOS:
        return None
    name = clean_name(picture.name)
    part = FilePart(kind="image", media_type=media_type, data=found, name=name)
    return Prepared(param=picture.param, name=name, kind="image", media_type=media_type, parts=(part,))


def _check_kind(taken: Prepared, wants: Wants) -> None:
    if taken.kind == "image" and not wants.images:
        raise GatewayError(Reason.IMAGES_NOT_ENABLED, project=wants.tenant)
    if taken.kind == "document" and not wants.documents:
        raise GatewayError(Reason.DOCUMENTS_NOT_ENABLED, project=wants.tenant)


def _key(attachment: Attachment, wants: Wants, abilities: Abilities, max_pages: int) -> bytes:
    """Everything that what is made of a file depends on; what an address held belongs to who asked for it."""
    owner = wants.tenant if attachment.url else None
    facts = (_digest(attachment), owner, attachment.media_type, attachment.name, abilities, max_pages, wants.limits)
    return blake2b(repr(facts).encode("utf-8", "surrogatepass"), digest_size=32).digest()


class _Kept:
    """What was made of files, least recently used first, at most `limit` bytes of it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._files: OrderedDict[bytes, tuple[Prepared, int, float | None]] = OrderedDict()

    def get(self, key: bytes) -> Prepared | None:
        found = self._files.get(key)
        if found is None:
            return None
        if found[2] is not None and time.monotonic() > found[2]:
            self._drop(key)
            return None
        self._files.move_to_end(key)
        return found[0]

    def put(self, key: bytes, taken: Prepared, seconds: float | None) -> None:
        if key in self._files:
            return
        size = _size(taken)
        if size > self._limit // 2:
            return
        self._files[key] = (taken, size, None if seconds is None else time.monotonic() + seconds)
        self._bytes += size
        while self._bytes > self._limit:
            self._drop(next(iter(self._files)))

    def _drop(self, key: bytes) -> None:
        self._bytes -= self._files.pop(key)[1]


def _size(taken: Prepared) -> int:
    parts = sum(4 * len(part.text) if isinstance(part, TextPart) else len(part.data) for part in taken.parts)
    return parts + sum(4 * len(text) for text in taken.page_texts) + 1024
