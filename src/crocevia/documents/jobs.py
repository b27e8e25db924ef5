"""What the server and a worker process say to each other."""

from __future__ import annotations

from typing import Literal

import msgspec

RefusalKey = Literal[
    "pdf_damaged",
    "pdf_truncated",
    "pdf_encrypted",
    "pdf_empty",
    "pdf_pages",
    "pdf_page_size",
    "image_damaged",
    "image_pixels",
    "file_heavy",
    "document_unset",
]


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
    """Either a refusal, whose arguments are numbers, or the result of the operation."""

    refusal: RefusalKey | None = None
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
    """The file is to be refused with this sentence."""

    def __init__(self, key: RefusalKey, **numbers: int) -> None:
        super().__init__(key)
        self.key = key
        self.numbers = numbers
