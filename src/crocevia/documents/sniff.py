"""What a file is, from its bytes. Pure; a label is only ever a hint between kinds of text."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from pathlib import PurePosixPath

from crocevia.core.errors import GatewayError, Reason

PDF = "application/pdf"
TEXT = "text/plain"
PHOTOS = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
HEIF = frozenset({"image/heic", "image/heif"})
IMAGES = PHOTOS | HEIF
TEXTS = frozenset({TEXT, "text/markdown", "text/html", "text/csv", "application/json"})

_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/heic-sequence": "image/heic",
    "image/heif-sequence": "image/heif",
    "application/x-pdf": PDF,
    "text/x-markdown": "text/markdown",
    "application/csv": "text/csv",
    "text/json": "application/json",
    "application/octet-stream": "",
    "binary/octet-stream": "",
}
_SUFFIXES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".csv": "text/csv",
    ".json": "application/json",
}
_STARTS = (
    (b"%PDF-", PDF),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_REFUSED_STARTS = (
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\xd0\xcf\x11\xe0", "application/x-ole-storage"),
    (b"RIFF", "audio/wav"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
)
ENDS = (b"startxref", b"%%EOF")
"""How a PDF ends that was not cut: some writers leave out one of them, and readers do without."""
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
_WIDE_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_IN_TEXT = bytes(code for code in range(32) if code not in b"\t\n\r\f\b\x1b") + b"\x7f"


def sniff(data: bytes) -> str | None:
    """The media type that the bytes prove; `text/plain` for anything readable; None for anything else."""
    for start, media_type in _STARTS:
        if data.startswith(start):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:8] == b"ftyp":
        return _heif(data)
    return TEXT if is_text((data,)) else None


def detect_type(data: bytes, declared: str | None, name: str, allowed: frozenset[str]) -> str:
    """The type to treat a file as: what its bytes say, corrected from `declared` where it lies harmlessly.

    Raises GatewayError(INVALID_REQUEST) when that type is not in `allowed`, or when readable text was
    declared to be something else.
    """
    label = normalised(declared)
    found = sniff(data)
    if found in (None, TEXT) and label in ("", PDF) and _has_late_pdf_header(data):
        found = PDF
    if found == TEXT:
        if label and label not in allowed & TEXTS:
            raise _unaccepted(label if _is_textual(label) else TEXT)
        found = label or _SUFFIXES.get(PurePosixPath(name).suffix.lower(), TEXT)
    if found is None or found not in allowed:
        raise _unaccepted(found or _guess(data))
    return found


def normalised(declared: str | None) -> str:
    """A declared media type without parameters, in lower case, by its usual name; empty when it says nothing."""
    label = (declared or "").partition(";")[0].strip().lower()
    return _ALIASES.get(label, label)


def _unaccepted(media_type: str) -> GatewayError:
    return GatewayError(Reason.TYPE_NOT_ACCEPTED, type=media_type)


def _is_textual(label: str) -> bool:
    return label.startswith("text/") or label in TEXTS


def _has_late_pdf_header(data: bytes) -> bool:
    # Readers look for the header in the first KiB: exports with a few lines in front are common.
    return b"%PDF-" in data[:1024] and any(mark in data[-2048:] for mark in ENDS)


def _heif(data: bytes) -> str | None:
    size = min(int.from_bytes(data[:4], "big"), 256)
    brands = {data[8:12]} | {data[at : at + 4] for at in range(16, size - 3, 4)}
    if data[8:12] == b"avif" or not brands & (_HEIC_BRANDS | {b"mif1", b"msf1"}):
        return None
    return "image/heic" if brands & _HEIC_BRANDS else "image/heif"


def is_text(blocks: Iterable[bytes]) -> bool:
    """Whether bytes can be read as text, whatever its encoding (see `text.decode_text`)."""
    anything = False
    for block in blocks:
        if not anything and block.startswith(_WIDE_MARKS):
            return True
        if len(block.translate(None, _NOT_IN_TEXT)) != len(block):
            return False
        anything = anything or bool(block)
    return anything


def _guess(data: bytes) -> str:
    """What to call a file in its refusal; decides nothing."""
    if data[4:8] == b"ftyp":
        return "image/avif" if data[8:12] == b"avif" else "video/mp4"
    return next((named for start, named in _REFUSED_STARTS if data.startswith(start)), "application/octet-stream")
