"""The entry: what a caller attached -> parts of a message that the engine can take. The same for every door.

Strategy: everything that can be refused from the request's text is refused before anything is fetched or decoded;
then files are taken in side by side, and the first failure stops the others. Errors name the part by the caller's
own path (`Attachment.param`) and say why.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import unicodedata
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import unquote_to_bytes

import msgspec

from crocevia.core.calls import Abilities
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.messages import FilePart, Part, TextPart
from crocevia.documents.fetch import Fetcher, FetchPolicy
from crocevia.documents.images import prepare_photo
from crocevia.documents.jobs import PdfContent, PdfPage
from crocevia.documents.pdf import check_pdf, read_pdf
from crocevia.documents.sniff import HEIF, IMAGES, PDF, PHOTOS, TEXTS, detect_type, normalised
from crocevia.documents.text import cut, decode_text, fence, placeholder
from crocevia.documents.workers import Share, Workers

_MIB = 1024 * 1024
_STANDARD = bytes.maketrans(b"-_", b"+/")
_DECODE_STEP = 1 << 20  # characters of base64 at a time: the decoder holds the interpreter's lock
RENDERED = "[PDF content rendered to images]"
_DATA_URL = re.compile(r"data:([^,]{0,200}?)(;base64)?,", re.IGNORECASE)

Kind = Literal["document", "image"]


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """One file or picture that a caller attached."""

    param: str
    """Where it stands in the request (`messages[0].content[1]`)."""
    data: str | None = None
    """Base64. Exactly one of this and `url`."""
    url: str | None = None
    """An address or a data URL."""
    kind: Kind | None = None
    """What the caller's form allows it to be; None: either."""
    media_type: str | None = None
    """As declared, with its charset if any. Only a hint: what a file is, its bytes say."""
    name: str | None = None

    def __repr__(self) -> str:
        return f"Attachment(param={self.param!r})"

    @property
    def is_image(self) -> bool:
        """Whether the caller calls it one."""
        return (self.media_type or "").lower().startswith("image/")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one door accepts. Sizes in bytes after decoding; a policy of None means that this kind may not come by URL.

    min_text_chars, max_rendered, page_pixels: see `pdf.read_pdf`. image_pixels: refused above; image_side: shrunk
    above.
    """

    max_count: int
    max_urls: int
    document_types: frozenset[str]
    image_types: frozenset[str]
    document_bytes: int
    image_bytes: int
    document_fetch: FetchPolicy | None
    image_fetch: FetchPolicy | None
    data_urls: bool = True
    """An address may be the content itself."""
    max_pages: int
    max_chars: int
    min_text_chars: int
    max_rendered: int
    page_pixels: int
    image_pixels: int = 64_000_000
    image_side: int = 8000


PEPPER = Limits(
    max_count=5,
    max_urls=5,
    document_types=frozenset({PDF}),
    image_types=PHOTOS,
    document_bytes=10 * _MIB,
    image_bytes=5 * _MIB,
    data_urls=False,
    document_fetch=FetchPolicy(timeout=20.0),
    image_fetch=FetchPolicy(timeout=20.0),
    max_pages=600,
    max_chars=2_000_000,
    min_text_chars=200,
    max_rendered=20,
    page_pixels=2_000_000,
)
RESPONSES = Limits(
    max_count=32,
    max_urls=8,
    document_types=TEXTS | {PDF},
    image_types=IMAGES,
    document_bytes=5 * _MIB,
    image_bytes=10 * _MIB,
    document_fetch=FetchPolicy(schemes=("http", "https")),
    image_fetch=FetchPolicy(schemes=("http", "https")),
    max_pages=600,
    max_chars=60_000,
    min_text_chars=200,
    max_rendered=4,
    page_pixels=4_000_000,
)


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """One attachment, taken in. `media_type` and `kind` are what it really was: check permissions against them."""

    param: str
    name: str
    kind: Kind
    media_type: str
    parts: tuple[Part, ...]
    """What to send, in order; text that was extracted is already fenced."""
    pages: int | None = None
    """None if it has none."""
    page_texts: tuple[str, ...] = ()
    """The bare text of each page, when it was read here (a source for locating citations)."""


class _Raw(msgspec.Struct, frozen=True, kw_only=True):
    data: bytes
    declared: str | None
    name: str


async def prepare(
    attachments: Sequence[Attachment], limits: Limits, engine: Abilities, *, fetcher: Fetcher, workers: Workers | Share
) -> tuple[Prepared, ...]:
    """Every attachment as parts, in order.

    Raises GatewayError: INVALID_REQUEST (which part, and why), UNSUPPORTED (the engine cannot see it), UNAVAILABLE
    (too many files are being read).
    """
    if not attachments:
        return ()
    check_count(attachments, limits)
    urls = [attachment for attachment in attachments if attachment.url and not _is_data_url(attachment.url)]
    if len(urls) > limits.max_urls:
        param = urls[limits.max_urls].param
        raise GatewayError(Reason.URLS_MANY, param=param, count=len(urls), limit=limits.max_urls)
    for attachment in attachments:
        if (attachment.data is None) == (attachment.url is None):
            raise _at(attachment, GatewayError(Reason.SOURCE_ONE_OF))
    tasks = [asyncio.create_task(_prepare(attachment, limits, engine, fetcher, workers)) for attachment in attachments]
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def check_count(attachments: Sequence[Attachment], limits: Limits) -> None:
    """Raises GatewayError(INVALID_REQUEST) that names the first one too many."""
    most = limits.max_count
    if len(attachments) > most:
        raise GatewayError(Reason.FILES_MANY, param=attachments[most].param, count=len(attachments), limit=most)


async def _prepare(
    attachment: Attachment, limits: Limits, engine: Abilities, fetcher: Fetcher, workers: Workers | Share
) -> Prepared:
    try:
        raw = await _load(attachment, limits, fetcher)
        media_type = await asyncio.to_thread(
            detect_type, raw.data, raw.declared, raw.name, _types(attachment.kind, limits)
        )
        kind: Kind = "image" if media_type in IMAGES else "document"
        limit = limits.image_bytes if kind == "image" else limits.document_bytes
        if len(raw.data) > limit:
            raise GatewayError(Reason.FILE_LARGE, limit=limit)
        if kind == "image":
            return await _prepare_image(attachment, raw, media_type, limits, engine, workers)
        if media_type == PDF:
            return await _prepare_pdf(attachment, raw, limits, engine, workers)
        return await _prepare_text(attachment, raw, media_type, limits)
    except GatewayError as error:
        raise _at(attachment, error) from None


async def _load(attachment: Attachment, limits: Limits, fetcher: Fetcher) -> _Raw:
    most = _most_bytes(attachment.kind, limits)
    if attachment.data is not None and _is_data_url(attachment.data):
        return await _inline(attachment, attachment.data, most)
    if attachment.data is not None:
        data = await _decoded(attachment.data, most)
        return _Raw(data=data, declared=attachment.media_type, name=clean_name(attachment.name))
    url = attachment.url or ""
    if _is_data_url(url):
        if not limits.data_urls:
            raise GatewayError(Reason.FETCH_SCHEME, schemes="https")
        return await _inline(attachment, url, most)
    policy = _policy(attachment, limits)
    if policy is None:
        raise GatewayError(Reason.URLS_OFF)
    fetched = await fetcher.fetch(url, msgspec.structs.replace(policy, max_bytes=most))
    # The caller's label wins over the server's, which is about the transport; both are only hints.
    declared = attachment.media_type or fetched.content_type or None
    return _Raw(data=fetched.data, declared=declared, name=clean_name(attachment.name or fetched.name))


async def _inline(attachment: Attachment, url: str, most: int) -> _Raw:
    found = _DATA_URL.match(url)
    if found is None:
        raise GatewayError(Reason.FETCH_MALFORMED)
    body = url[found.end() :]
    if found[2]:
        data = await _decoded(body, most)
    else:
        if len(body) > 3 * most:
            raise GatewayError(Reason.FILE_LARGE, limit=most)
        data = unquote_to_bytes(body)
    return _Raw(data=data, declared=attachment.media_type or found[1] or None, name=clean_name(attachment.name))


async def _decoded(data: str, most: int) -> bytes:
    if len(data) > 2 * most + 1024:  # generous with line breaks, firm with everything else
        raise GatewayError(Reason.FILE_LARGE, limit=most)
    try:
        decoded = await asyncio.to_thread(decode_base64, data)
    except ValueError:
        raise GatewayError(Reason.BASE64_MALFORMED) from None
    if not decoded:
        raise GatewayError(Reason.FILE_EMPTY)
    if len(decoded) > most:
        raise GatewayError(Reason.FILE_LARGE, limit=most)
    return decoded


def decode_base64(text: str) -> bytes:
    """Canonical base64 of either alphabet, padded or not; blanks and line breaks are let through. Raises ValueError."""
    packed = text.encode("ascii").translate(None, b" \t\r\n")
    if b"-" in packed or b"_" in packed:
        if b"+" in packed or b"/" in packed:
            raise ValueError("two alphabets")
        packed = packed.translate(_STANDARD)
    if len(packed) % 4 and b"=" not in packed[-2:]:
        packed += b"=" * (-len(packed) % 4)
    if len(packed) % 4 or b"=" in packed[:-2]:
        raise ValueError("padding")
    pieces = [
        binascii.a2b_base64(packed[at : at + _DECODE_STEP], strict_mode=True)
        for at in range(0, len(packed), _DECODE_STEP)
    ]
    if pieces and base64.b64encode(pieces[-1][-(len(pieces[-1]) % 3 or 3) :]) != packed[-4:]:
        raise ValueError("not canonical")
    return b"".join(pieces)


def clean_name(name: str | None) -> str:
    """A file name without folders, controls, invisible or direction-changing characters, of at most 120 characters."""
    shown = "".join(" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in (name or "")[:1024])
    last = PurePosixPath(shown.replace("\\", "/")).name
    bare = " ".join(last.split()).lstrip(". ")
    if len(bare) > 120:
        suffix = PurePosixPath(bare).suffix[:12]
        bare = bare[: 120 - len(suffix)] + suffix
    return bare or "file"


async def _prepare_image(
    attachment: Attachment, raw: _Raw, media_type: str, limits: Limits, engine: Abilities, workers: Workers | Share
) -> Prepared:
    if not engine.images:
        raise GatewayError(Reason.ENGINE_NO_IMAGES)
    sent, data = await prepare_photo(
        workers,
        raw.data,
        media_type,
        max_pixels=limits.image_pixels,
        max_side=min(limits.image_side, engine.needs.image_side),
    )
    name = raw.name if sent == media_type else PurePosixPath(raw.name).stem + (".png" if "png" in sent else ".jpg")
    part = FilePart(kind="image", media_type=sent, data=data, name=name)
    return Prepared(param=attachment.param, name=raw.name, kind="image", media_type=media_type, parts=(part,))


async def _prepare_pdf(
    attachment: Attachment, raw: _Raw, limits: Limits, engine: Abilities, workers: Workers | Share
) -> Prepared:
    if engine.documents:
        content = await check_pdf(workers, raw.data, max_pages=limits.max_pages)
        # Providers refuse protected files, also those that anybody may read: those are read here instead.
        if not content.locked:
            part = FilePart(kind="document", media_type=PDF, data=raw.data, name=raw.name)
            return _pdf_prepared(attachment, raw, content, (part,))
    content = await read_pdf(
        workers,
        raw.data,
        max_pages=limits.max_pages,
        max_chars=limits.max_chars,
        min_text_chars=limits.min_text_chars,
        max_rendered=limits.max_rendered if engine.images else 0,
        page_pixels=limits.page_pixels,
    )
    parts = await asyncio.to_thread(_pdf_parts, content, raw.name)
    if not parts:
        raise GatewayError(Reason.PDF_WITHOUT_TEXT)
    return _pdf_prepared(attachment, raw, content, parts)


def _pdf_prepared(attachment: Attachment, raw: _Raw, content: PdfContent, parts: tuple[Part, ...]) -> Prepared:
    return Prepared(
        param=attachment.param,
        name=raw.name,
        kind="document",
        media_type=PDF,
        parts=parts,
        pages=content.pages,
        page_texts=tuple(page.text for page in content.read),
    )


def _pdf_parts(content: PdfContent, name: str) -> tuple[Part, ...]:
    """One block of text, then the rendered pages in order; empty when there is nothing to see."""
    images = [
        FilePart(kind="image", media_type="image/jpeg", data=page.image, name=f"{name} page {number}.jpg")
        for number, page in enumerate(content.read, 1)
        if page.image is not None
    ]
    text = "\n\n".join(filter(None, map(_page_text, range(1, len(content.read) + 1), content.read)))
    if not any(page.text.strip() for page in content.read):
        text = ""
    notes = [] if content.complete else [f"[cut after {len(text)} characters]"]
    if content.unseen and (text or images):
        notes.append(f"[pages without text that are not shown: {content.unseen}]")
    if text:
        return (TextPart(text=fence("\n".join([text, *notes]), name)), *images)
    if images:
        return (TextPart(text=placeholder("\n".join([RENDERED, *notes]), name)), *images)
    return ()


def _page_text(number: int, page: PdfPage) -> str:
    text = page.text.strip()
    return text if page.image is None else f"{text}\n[page {number} follows as an image]".strip()


async def _prepare_text(attachment: Attachment, raw: _Raw, media_type: str, limits: Limits) -> Prepared:
    def block() -> str:
        return fence(cut(decode_text(raw.data, raw.declared), limits.max_chars), raw.name)

    part = TextPart(text=await asyncio.to_thread(block))
    return Prepared(param=attachment.param, name=raw.name, kind="document", media_type=media_type, parts=(part,))


def _types(kind: Kind | None, limits: Limits) -> frozenset[str]:
    if kind is None:
        return limits.document_types | limits.image_types
    return limits.image_types if kind == "image" else limits.document_types


def _most_bytes(kind: Kind | None, limits: Limits) -> int:
    if kind is None:
        return max(limits.document_bytes, limits.image_bytes)
    return limits.image_bytes if kind == "image" else limits.document_bytes


def _policy(attachment: Attachment, limits: Limits) -> FetchPolicy | None:
    is_image = attachment.kind == "image" or (
        attachment.kind is None and normalised(attachment.media_type) in PHOTOS | HEIF
    )
    return limits.image_fetch if is_image else limits.document_fetch


def _is_data_url(url: str) -> bool:
    return url[:5].lower() == "data:"


def _at(attachment: Attachment, error: GatewayError) -> GatewayError:
    if error.code is Code.UNAVAILABLE:
        return error
    return GatewayError(
        Reason.PART_REFUSED, code=error.code, param=attachment.param, part=attachment.param, reason=error.message
    )
