"""PDFs, read at arm's length: counted, checked, turned into text and pictures by a worker process."""

from __future__ import annotations

from crocevia.documents.jobs import Job, PdfContent
from crocevia.documents.workers import Share, Workers

_MEMORY = 768 << 20


async def check_pdf(workers: Workers | Share, data: bytes, *, max_pages: int) -> PdfContent:
    """Its page count and whether it is locked; every page was loaded once. Raises GatewayError(INVALID_REQUEST)."""
    job = Job(operation="pdf_check", options={"max_pages": max_pages}, memory=_MEMORY, seconds=_seconds(data))
    return await workers.run(job, data, PdfContent, max_output=1 << 16)


async def read_pdf(
    workers: Workers | Share,
    data: bytes,
    *,
    max_pages: int,
    max_chars: int,
    min_text_chars: int,
    max_rendered: int,
    page_pixels: int,
) -> PdfContent:
    """The text of its pages, at most `max_chars`, and JPEGs of those that have little. Raises like `check_pdf`.

    A document of fewer than `min_text_chars` (blanks apart) is rendered from its first page on; any other only where
    a painted page has no text. At most `max_rendered` pages of `page_pixels` each.
    """
    options = {
        "max_pages": max_pages,
        "max_chars": max_chars,
        "min_text_chars": min_text_chars,
        "max_rendered": max_rendered,
        "page_pixels": page_pixels,
    }
    job = Job(
        operation="pdf_read",
        options=options,
        memory=_MEMORY,
        seconds=_seconds(data),
        pages_seconds=max_rendered,
    )
    # UTF-8 takes at most 4 bytes a character, and a page's JPEG about one a pixel if the page is pure noise.
    max_output = 4 * max_chars + 16 * max_pages + max_rendered * page_pixels + (1 << 16)
    return await workers.run(job, data, PdfContent, max_output=max_output)


def _seconds(data: bytes) -> float:
    """CPU seconds a PDF deserves: a small one that takes long is a bomb."""
    return 1.5 + len(data) / (2 * 1024 * 1024)
