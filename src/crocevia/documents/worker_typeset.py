"""Sets a text as PDF pages. Runs only inside the worker process."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

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
    more = _needs_more_fonts(text)
    lacking = _lacking(text) if more else []
    if lacking:
        text = f"{_NO_FONT}{', '.join(lacking)}\n\n{text}"
    source = write(text, title)
    try:
        made: object = typst.compile(  # type: ignore[call-overload]  # the root may be a path whatever the source is
            source.encode(), format="pdf", root=str(_ROOT), ignore_system_fonts=not more
        )
    except (typst.TypstError, ValueError, OSError):
        raise Refusal(Reason.DOCUMENT_UNSET) from None
    if not isinstance(made, bytes):
        raise Refusal(Reason.DOCUMENT_UNSET)
    return made


def _needs_more_fonts(text: str) -> bool:
    # The fonts that come with Typst know Latin, Greek and Cyrillic; for the rest we look at what the machine has.
    return any(character > "\u052f" and not "\u1e00" <= character <= "\u2bff" for character in text)


_CJK: Final = re.compile("[\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]")
_EMOJI: Final = re.compile("[\ufe0f\U0001f000-\U0001faff]")
# Characters, words in the names of families that have them, and a package of such a family.
_SCRIPTS: Final = (
    (_CJK, ("cjk", "han sans", "han serif", "wenquanyi", "ipaex", "nanum", "unifont"), "fonts-noto-cjk"),
    (_EMOJI, ("emoji", "symbola"), "fonts-noto-color-emoji"),
)
_NO_FONT: Final = (
    "Some characters of this text have no font on this server; a package that has them / "
    "Alcuni caratteri di questo testo non hanno un font su questo server; un pacchetto che li ha: "
)


def _lacking(text: str) -> list[str]:
    """Packages with fonts for what this text holds and this machine cannot draw."""
    wanted = [(words, package) for letters, words, package in _SCRIPTS if letters.search(text)]
    families = " ".join(typst.Fonts(include_system_fonts=True).families()).casefold() if wanted else ""
    return [package for words, package in wanted if not any(word in families for word in words)]
