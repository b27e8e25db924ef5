"""Texts as PDF: what the machine has no font for is told in the document, never shown as boxes alone."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pypdfium2
import pytest

from crocevia.documents import worker_typeset

CASES = [
    ("Caff\u00e8, \u0394, \u0416, \u2713 \u2192", []),
    ("\u6f22\u5b57", ["fonts-noto-cjk"]),
    ("\ud55c\uad6d\uc5b4", ["fonts-noto-cjk"]),
    ("\u304b\u306a", ["fonts-noto-cjk"]),
    ("party \U0001f389", ["fonts-noto-color-emoji"]),
    ("\u6f22\u5b57 \U0001f389", ["fonts-noto-cjk", "fonts-noto-color-emoji"]),
]


def letters(pdf: bytes) -> str:
    """The Latin letters of a document: where a line is broken, nothing else is sure."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return re.sub("[^a-z]", "", "".join(page.get_textpage().get_text_range() for page in document))
    finally:
        document.close()


@pytest.mark.parametrize(("text", "packages"), CASES)
@pytest.mark.parametrize("typeset", [worker_typeset.typeset_text, worker_typeset.typeset_markdown])
def test_a_script_without_a_font_is_told_in_the_document(
    text: str, packages: list[str], typeset: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    families: list[str] = []
    monkeypatch.setattr(
        worker_typeset.typst, "Fonts", lambda include_system_fonts: SimpleNamespace(families=lambda: families)
    )
    said = letters(typeset(f"title\n{text}".encode(), {}))  # type: ignore[operator]
    assert [one for one in ("fonts-noto-cjk", "fonts-noto-color-emoji") if one.replace("-", "") in said] == packages
    assert ("nonhannounfont" in said) == bool(packages)
    families += ["Noto Sans CJK JP", "Noto Color Emoji"]
    assert "fontsnoto" not in letters(typeset(f"title\n{text}".encode(), {}))  # type: ignore[operator]
