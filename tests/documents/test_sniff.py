import gzip
import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crocevia.core.errors import Code, GatewayError
from crocevia.documents.headers import Header, read_header
from crocevia.documents.sniff import HEIF, IMAGES, PDF, PHOTOS, TEXT, TEXTS, detect_type, sniff
from tests.documents import zoo

ALL = TEXTS | IMAGES | {PDF}


def archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("a.txt", "a")
    return out.getvalue()


GOOD = {
    PDF: zoo.pdf(),
    "image/jpeg": zoo.photo("JPEG"),
    "image/png": zoo.photo("PNG"),
    "image/gif": zoo.photo("GIF"),
    "image/webp": zoo.photo("WEBP"),
    "image/heic": zoo.rotated_heic(),
}


@pytest.mark.parametrize("media_type", GOOD)
@pytest.mark.parametrize(
    "declared", [None, "application/octet-stream", "image/png", "image/jpg", "text/plain", PDF, "x/y"]
)
def test_the_bytes_decide_whatever_was_declared(media_type: str, declared: str | None) -> None:
    assert detect_type(GOOD[media_type], declared, "x.bin", ALL) == media_type


@pytest.mark.parametrize(
    ("declared", "name", "expected"),
    [
        (None, "x", TEXT),
        (None, "notes.MD", "text/markdown"),
        (None, "x.csv", "text/csv"),
        ("application/octet-stream", "x.json", "application/json"),
        ("text/html; charset=utf-8", "x.txt", "text/html"),
        ("TEXT/CSV", "x", "text/csv"),
        ("text/json", "x", "application/json"),
    ],
)
def test_a_label_or_a_name_chooses_between_kinds_of_text(declared: str | None, name: str, expected: str) -> None:
    assert detect_type(b"a,b\n", declared, name, ALL) == expected


REFUSED = {
    "text as pdf": (b"just words", PDF, ALL, TEXT),
    "text as photo": (b"just words", "image/png", ALL, TEXT),
    "text of a kind that is off": (b"<p>", "text/html", frozenset({TEXT}), "text/html"),
    "unknown kind of text": (b"x", "text/x-python", ALL, "text/x-python"),
    "pdf where only photos may come": (zoo.pdf(), "image/png", PHOTOS, PDF),
    "heic where only photos may come": (zoo.rotated_heic(), "image/jpeg", PHOTOS, "image/heic"),
    "text where only pdf may come": (b"just words", None, frozenset({PDF}), TEXT),
    "program": (b"\x7fELF\x02\x01\x01" + bytes(64), TEXT, ALL, None),
    "zip": (archive(), "application/zip", ALL, "application/zip"),
    "zip as pdf": (archive(), PDF, ALL, "application/zip"),
    "gzip as text": (gzip.compress(b"x"), TEXT, ALL, "application/gzip"),
    "avif": (b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf" + bytes(50), "image/heic", ALL, "image/avif"),
    "video": (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom" + bytes(50), "image/heic", ALL, None),
    "zeros": (bytes(1000), None, ALL, None),
    "text with a zero": (b"hello\x00world", TEXT, ALL, None),
    "empty": (b"", TEXT, ALL, None),
    "bitmap": (b"BM" + bytes(60), "image/png", ALL, "image/bmp"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_allowed_is_refused_by_its_real_type(case: str) -> None:
    data, declared, allowed, named = REFUSED[case]
    with pytest.raises(GatewayError) as caught:
        detect_type(data, declared, "x", allowed)
    assert caught.value.code is Code.INVALID_REQUEST
    assert caught.value.message.reason == "type_not_accepted"
    assert named is None or caught.value.message.details == {"type": named}


def test_a_pdf_behind_a_few_lines_is_a_pdf_and_a_text_about_pdfs_is_not() -> None:
    assert detect_type(b"HTTP noise\n" + zoo.pdf(), PDF, "x", ALL) == PDF
    assert detect_type(b"a file starts with %PDF-1.7", TEXT, "x", ALL) == TEXT
    assert detect_type(GOOD["image/jpeg"] + zoo.pdf(), PDF, "x", ALL) == "image/jpeg"


@given(st.binary(max_size=200))
def test_no_bytes_make_sniffing_fail(data: bytes) -> None:
    assert sniff(data) in ALL | {None}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (zoo.photo("PNG"), Header(width=40, height=20)),
        (zoo.photo("GIF"), Header(width=40, height=20)),
        (zoo.photo("WEBP"), Header(width=40, height=20)),
        (zoo.photo("JPEG"), Header(width=40, height=20)),
        *((zoo.photo("JPEG", orientation=turn), Header(width=40, height=20)) for turn in (1, 6, 77)),
        (zoo.bomb_png(), Header(width=30_000, height=30_000)),
        (zoo.rotated_heic(), Header(width=64, height=64)),
    ],
)
def test_a_header_tells_the_size_without_decoding(data: bytes, expected: Header) -> None:
    assert read_header(data, sniff(data) or "") == expected


@pytest.mark.parametrize("kind", sorted(GOOD.keys() - {PDF}))
def test_a_picture_cut_short_or_scrambled_is_a_value_error_or_a_header(kind: str) -> None:
    data = GOOD[kind]
    for cut in range(len(data) - 1):
        if kind != "image/gif" and cut < len(data) // 2:
            with pytest.raises(ValueError, match=r"\w"):
                read_header(data[:cut], kind)
    for at in range(min(len(data), 400)):
        for value in (0, 0x7F, 0xFF):
            try:
                read_header(data[:at] + bytes([value]) + data[at + 1 :], kind)
            except ValueError:
                continue


@given(st.sampled_from(sorted(PHOTOS | HEIF)), st.binary(max_size=300), st.binary(max_size=64))
def test_no_bytes_make_reading_a_header_fail_otherwise(kind: str, data: bytes, tail: bytes) -> None:
    start = GOOD.get(kind, GOOD["image/heic"])[:48]
    for content in (data, start + data, start + tail):
        try:
            header = read_header(content, kind)
        except ValueError:
            continue
        assert header.width > 0
        assert header.height > 0


def test_a_gif_frame_larger_than_its_screen_counts() -> None:
    data = bytearray(zoo.photo("GIF"))
    data[6:10] = b"\x01\x00\x01\x00"
    assert read_header(bytes(data), "image/gif") == Header(width=40, height=20)
