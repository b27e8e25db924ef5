"""Markdown and plain text as PDF pages."""

from __future__ import annotations

from importlib.util import find_spec

from crocevia.core.errors import GatewayError, Reason
from crocevia.documents.jobs import Job
from crocevia.documents.workers import Share, Workers

MAX_PDF = 32 * 1024 * 1024
_MEMORY = 3 << 29  # 1.5 GiB of address space; fonts and layout of the longest text take a tenth of it
_SECONDS = 20


async def typeset(workers: Workers | Share, text: str, title: str, *, markdown: bool) -> bytes:
    """A4 pages with `title` as the document's.

    Raises GatewayError: INVALID_REQUEST, UNAVAILABLE (workers.py), UNSUPPORTED without the `pdf` extra.
    """
    if find_spec("typst") is None:
        raise GatewayError(Reason.PDF_NOT_INSTALLED)
    head = title.replace("\n", " ").encode()
    job = Job(operation="typeset_markdown" if markdown else "typeset_text", memory=_MEMORY, seconds=_SECONDS)
    made = await workers.run(job, head + b"\n" + text.encode(), bytes, max_output=MAX_PDF)
    if not made.startswith(b"%PDF-"):
        raise GatewayError(Reason.FILE_BROKE)
    return made
