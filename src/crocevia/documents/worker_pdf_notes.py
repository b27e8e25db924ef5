"""What stands on a page but is no content of it: values of form fields, and comments. Runs only inside the worker."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, Final

import pypdfium2.raw as pdfium

_LONGEST: Final = 1 << 16  # bytes of one value
_UNSEEN: Final = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD: Final = 1 << 13  # a text field that shows dots
_TICKED: Final = frozenset({pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON})
_TYPED: Final = frozenset(
    {pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX}
)
_NO_COMMENT: Final = frozenset({pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_WIDGET})


def notes_of(document: Any, page: Any, most: int) -> str:
    """As it joins the text of its page. most: characters that are wanted; it ends soon after them."""
    fields: list[str] = []
    comments: list[str] = []
    for annotation in _annotations(page):
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        if kind == pdfium.FPDF_ANNOT_WIDGET:
            line, lines = _field(document, annotation), fields
        else:
            line, lines = _comment(annotation, kind), comments
        if line:
            lines.append(line)
            most -= len(line)
        if most < 0:
            break
    told = (("[form fields]", fields), ("[comments]", comments))
    return "\n".join("\n".join([title, *lines]) for title, lines in told if lines)


def _annotations(page: Any) -> Iterator[Any]:
    """Those that are to be seen."""
    for index in range(pdfium.FPDFPage_GetAnnotCount(page)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            if not pdfium.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
                yield annotation
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _field(document: Any, annotation: Any) -> str:
    """A field that is filled in, by the name that a reader of the form sees."""
    form = document.formenv
    if form is None:
        return ""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    name = _asked(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    name = name or _asked(pdfium.FPDFAnnot_GetFormFieldName, form, annotation)
    if kind in _TICKED:
        if not pdfium.FPDFAnnot_IsChecked(form, annotation):
            return ""
        return f"{name}: [x] {_asked(pdfium.FPDFAnnot_GetFormFieldExportValue, form, annotation)}".rstrip()
    if kind not in _TYPED or pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
        return ""
    value = _asked(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation)
    return f"{name}: {value}" if value else ""


def _comment(annotation: Any, kind: int) -> str:
    if kind in _NO_COMMENT:
        return ""
    text = _asked(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")
    author = _asked(pdfium.FPDFAnnot_GetStringValue, annotation, b"T") if text else ""
    return f"{author}: {text}" if author else text


def _asked(question: Callable[..., int], *of: Any) -> str:
    """A text that pdfium writes into a buffer, in UTF-16."""
    size = question(*of, None, 0)
    if not 2 < size <= _LONGEST:
        return ""
    buffer = ctypes.create_string_buffer(size)
    question(*of, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return (
        buffer.raw.decode("utf-16-le", "replace").partition("\0")[0].replace("\r\n", "\n").replace("\r", "\n").strip()
    )
