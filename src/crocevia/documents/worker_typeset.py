"""Sets a text as PDF pages. Runs only inside the worker process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typst

from crocevia.core.errors import Reason
from crocevia.documents import typst_markup
from crocevia.documents.jobs import Refusal

# The only folder that Typst may read from: it holds nothing but programs. Our documents name no files anyway.
_ROOT = Path(__file__).parent


def typeset_markdown(data: bytes, options: dict[str, int]) -> bytes:
    """data: the title's line, then Markdown."""
    return _set(data, typst_markup.markdown)


def typeset_text(data: bytes, options: dict[str, int]) -> bytes:
    """data: the title's line, then plain text."""
    return _set(data, typst_markup.plain)


def _set(data: bytes, write: Callable[[str, str], str]) -> bytes:
    title, _, text = data.decode().partition("\n")
    source = write(text, title)
    try:
        made: object = typst.compile(  # type: ignore[call-overload]  # the root may be a path whatever the source is
            source.encode(), format="pdf", root=str(_ROOT), ignore_system_fonts=not _needs_more_fonts(text)
        )
    except (typst.TypstError, ValueError, OSError):
        raise Refusal(Reason.DOCUMENT_UNSET) from None
    if not isinstance(made, bytes):
        raise Refusal(Reason.DOCUMENT_UNSET)
    return made


def _needs_more_fonts(text: str) -> bool:
    # The fonts that come with Typst know Latin, Greek and Cyrillic; for the rest we look at what the machine has.
    return any(character > "\u052f" and not "\u1e00" <= character <= "\u2bff" for character in text)
