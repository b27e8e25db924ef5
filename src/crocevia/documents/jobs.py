"""What the server and a worker process say to each other."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from crocevia.core.errors import Reason

REFUSALS: Final = frozenset(
    {
        Reason.PDF_DAMAGED,
        Reason.PDF_TRUNCATED,
        Reason.PDF_ENCRYPTED,
        Reason.PDF_EMPTY,
        Reason.PDF_PAGES,
        Reason.PDF_PAGE_SIZE,
        Reason.IMAGE_DAMAGED,
        Reason.IMAGE_PIXELS,
        Reason.FILE_HEAVY,
        Reason.DOCUMENT_UNSET,
    }
)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """operation: which of the worker's. memory: bytes of address space. seconds: of CPU time.

    pages_seconds: further CPU time that rendering may earn, page by page.
    """

    operation: Literal["pdf_check", "pdf_read", "image_convert", "typeset_markdown", "typeset_text"]
    options: dict[str, int] = {}
    memory: int = 1 << 30
    seconds: float = 5
    pages_seconds: float = 0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Either one of `REFUSALS`, whose details are numbers, or the result of the operation."""

    refusal: Reason | None = None
    numbers: dict[str, int] = {}
    result: msgspec.Raw = msgspec.Raw(b"\xc0")


class PdfPage(msgspec.Struct, frozen=True, kw_only=True):
    """text: what could be read on it. image: a JPEG of it when it was rendered."""

    text: str = ""
    image: bytes | None = None


class PdfContent(msgspec.Struct, frozen=True, kw_only=True):
    """pages: all of them, as counted. read: those with text, in order from the first. locked: protected, yet readable.

    complete: no page's text was left out for being over the limit. unseen: pages that should have been rendered and
    were over that limit.
    """

    pages: int
    locked: bool = False
    complete: bool = True
    unseen: int = 0
    read: tuple[PdfPage, ...] = ()


class Refusal(Exception):
    """The file is to be refused for one of `REFUSALS`."""

    def __init__(self, reason: Reason, **numbers: int) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.numbers = numbers
