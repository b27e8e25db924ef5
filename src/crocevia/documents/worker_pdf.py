"""Reads PDFs with pdfium. Runs only inside the worker process: pdfium is process-wide and trusts its input too much."""

from __future__ import annotations

import io
import math
import re
import signal
import sys
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from crocevia.core.errors import Reason
from crocevia.documents.jobs import PdfContent, PdfPage, Refusal
from crocevia.documents.sniff import ENDS
from crocevia.documents.worker_pdf_notes import notes_of

_MAX_SIDE = 14_400  # points: the largest page that the format's own limits know
_DPI_SCALE = 150 / 72
_SCANNED_CHARS = 16  # a page number alone does not make a scan readable
_MAX_INFLATED = 16 * 1024 * 1024
_PAGE_OBJECTS = re.compile(rb"(\d{1,10})\s+\d{1,5}\s+obj\b|/Type\s*/(Page|ObjStm)(?![A-Za-z0-9])")
_UNPRINTABLE = dict.fromkeys([*(code for code in range(32) if chr(code) not in "\t\n"), 0x7F, 0xFFFE, 0xFFFF])


def check(data: bytes, options: dict[str, int]) -> PdfContent:
    """Open, count and load every page: what a reader elsewhere will meet too. options: max_pages."""
    document = _open(data, options["max_pages"])
    for index in range(len(document)):
        _page(document, index).close()
    return PdfContent(pages=len(document), locked=_is_locked(document))


def read(data: bytes, options: dict[str, int]) -> PdfContent:
    """Text of every page with its filled fields and comments, and a JPEG of those that have little text of their own.

    options: max_pages, max_chars (of text in all), min_text_chars (a document with less is rendered from its first
    page on), max_rendered (pages), page_pixels (of one rendered page).
    """
    document = _open(data, options["max_pages"], forms=True)
    texts, sizes, complete = _texts(document, options["max_chars"])
    chosen = _to_render(document, sizes, complete, options["min_text_chars"])
    images = {index: _render(document, index, options["page_pixels"]) for index in chosen[: options["max_rendered"]]}
    count = max(len(texts), max(images, default=-1) + 1)
    texts += [""] * (count - len(texts))
    return PdfContent(
        pages=len(document),
        locked=_is_locked(document),
        complete=complete,
        unseen=len(chosen) - len(images),
        read=tuple(PdfPage(text=text, image=images.get(index)) for index, text in enumerate(texts)),
    )


def _open(data: bytes, max_pages: int, *, forms: bool = False) -> Any:
    if not any(mark in data.rstrip(b"\0 \r\n\t")[-4096:] for mark in ENDS):
        raise Refusal(Reason.PDF_TRUNCATED)  # pdfium would rebuild what is left and call it the document
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY)
        empty = error.err_code == pdfium.FPDF_ERR_SUCCESS
        raise Refusal(Reason.PDF_ENCRYPTED if locked else Reason.PDF_EMPTY if empty else Reason.PDF_DAMAGED) from None
    if forms:  # before anything else of the document is asked for
        with suppress(pypdfium2.PdfiumError):
            document.init_forms()
    if not len(document):
        raise Refusal(Reason.PDF_EMPTY)
    # The count is what the file says of itself; the page objects in it are what another reader may find.
    count = max(len(document), _count_page_objects(data)) if len(document) <= max_pages else len(document)
    if count > max_pages:
        raise Refusal(Reason.PDF_PAGES, pages=count, limit=max_pages)
    for index in range(len(document)):
        _check_size(document, index)
    return document


def _check_size(document: Any, index: int) -> None:
    try:
        sides = document.get_page_size(index)
    except pypdfium2.PdfiumError:
        raise Refusal(Reason.PDF_DAMAGED) from None
    if not all(math.isfinite(side) and 0 < side <= _MAX_SIDE for side in sides):
        raise Refusal(Reason.PDF_PAGE_SIZE, page=index + 1, limit=_MAX_SIDE)


def _is_locked(document: Any) -> bool:
    return bool(pdfium.FPDF_GetSecurityHandlerRevision(document) != -1)


def _page(document: Any, index: int) -> Any:
    try:
        return document[index]
    except pypdfium2.PdfiumError:
        raise Refusal(Reason.PDF_DAMAGED) from None


def _texts(document: Any, max_chars: int) -> tuple[list[str], list[int], bool]:
    """What is told of each page, how much of that is content of its own (blanks apart), and whether that is all."""
    texts: list[str] = []
    sizes: list[int] = []
    left = max_chars
    for index in range(len(document)):
        page = _page(document, index)
        text, whole = _text(page, left)
        notes = notes_of(document, page, left).translate(_UNPRINTABLE)
        page.close()
        sizes.append(len("".join(text.split())))
        told = f"{text.rstrip()}\n\n{notes}".strip() if notes else text
        texts.append(told[:left])
        if not whole or len(told) > left:
            return texts, sizes, False
        left -= len(told)
    return texts, sizes, True


def _text(page: Any, left: int) -> tuple[str, bool]:
    content = page.get_textpage()
    try:
        count = content.count_chars()
        raw = content.get_text_bounded() if count <= left + 4096 else content.get_text_range(0, left)
    except pypdfium2.PdfiumError:
        raise Refusal(Reason.PDF_DAMAGED) from None
    finally:
        content.close()
    text = raw.replace("\r\n", "\n").replace("\r", "\n").replace("\x02", "-").translate(_UNPRINTABLE)
    return text[:left], len(text) <= left and count <= left + 4096


def _to_render(document: Any, sizes: list[int], complete: bool, min_text_chars: int) -> list[int]:
    if complete and sum(sizes) < min_text_chars:
        return list(range(len(document)))
    return [index for index, size in enumerate(sizes) if size < _SCANNED_CHARS and _is_painted(document, index)]


def _is_painted(document: Any, index: int) -> bool:
    page = _page(document, index)
    painted = pdfium.FPDFPage_CountObjects(page) > 0 or pdfium.FPDFPage_GetAnnotCount(page) > 0
    page.close()
    return bool(painted)


def _render(document: Any, index: int, max_pixels: int) -> bytes:
    if sys.platform != "win32":
        # A page earns its own second only once it is reached: what hangs before has the time of its size, no more.
        signal.setitimer(signal.ITIMER_PROF, signal.getitimer(signal.ITIMER_PROF)[0] + 1)
    page = _page(document, index)
    width, height = page.get_size()
    # Sides are rounded up to whole pixels, so a sliver of a page needs its own floor.
    scale = min(_DPI_SCALE, math.sqrt(max_pixels / (width * height)), max_pixels / max(width, height))
    picture = page.render(scale=scale, may_draw_forms=True).to_pil().convert("RGB")
    page.close()
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=85)
    return out.getvalue()


def _count_page_objects(data: bytes) -> int:
    """How many different page objects the file holds, also inside compressed object streams. Bounded."""
    found: set[int] = set()
    current = -1
    budget = _MAX_INFLATED
    for match in _PAGE_OBJECTS.finditer(data):
        if match[1]:
            current = int(match[1])
        elif match[2] == b"Page":
            found.add(current)
        elif budget > 0:
            inflated = _inflate(data, match.end(), budget)
            budget -= len(inflated)
            found.update(_packed_pages(inflated))
    return len(found)


def _inflate(data: bytes, at: int, budget: int) -> bytes:
    start = data.find(b"stream", at, at + 4096)
    if start < 0:
        return b""
    start += 6 + (2 if data[start + 6 : start + 8] == b"\r\n" else 1)
    try:
        return zlib.decompressobj().decompress(memoryview(data)[start:], budget)
    except zlib.error:
        return b""


def _packed_pages(stream: bytes) -> Iterator[int]:
    """Numbers of the page objects in an object stream: pairs of number and offset, then the objects."""
    head = re.match(rb"[\s\d]*", stream)
    values = [int(value) for value in head[0].split()] if head else []
    numbers, offsets = values[0::2], values[1::2]
    first = head.end() if head else 0
    for match in re.finditer(rb"/Type\s*/Page(?![A-Za-z0-9])", stream):
        place = bisect_right(offsets, match.start() - first) - 1
        if 0 <= place < len(numbers):
            yield numbers[place]
