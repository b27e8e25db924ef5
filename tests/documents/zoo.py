"""Files that hurt, made in code. Each function returns the bytes of one file."""

from __future__ import annotations

import base64
import hashlib
import io
import struct
import zlib
from collections.abc import Sequence

from PIL import Image


def stream(body: bytes, extra: str = "", *, deflate: bool = False) -> bytes:
    """A PDF stream object's body."""
    if deflate:
        body, extra = zlib.compress(body, 9), extra + "/Filter/FlateDecode"
    return f"<<{extra}/Length {len(body)}>>\nstream\n".encode() + body + b"\nendstream"


def assemble(objects: Sequence[bytes], trailer: str = "") -> bytes:
    """A PDF of numbered objects (from 1; the first is the catalogue) with a right cross-reference table."""
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    out += f"trailer\n<</Size {len(objects) + 1}/Root 1 0 R{trailer}>>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def pdf(
    texts: Sequence[str] = ("Hello from page one.",),
    *,
    box: str = "0 0 595 842",
    count: int | None = None,
    padding: int = 0,
) -> bytes:
    """One page per text. `count` lies about how many; `padding` bytes are added in an unused stream."""
    pages = len(texts)
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(pages))
    told = pages if count is None else count
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {told}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    for index, text in enumerate(texts):
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents {5 + 2 * index} 0 R"
            "/Resources<</Font<</F 3 0 R>>>>>>".encode()
        )
        objects.append(stream(_lines(text)))
    if padding:
        objects.append(stream(b"\x00\xff" * (padding // 2)))
    return assemble(objects)


def _lines(text: str) -> bytes:
    shown = "".join(f"({line}) Tj 0 -14 Td\n" for line in text.split("\n"))
    return f"BT /F 11 Tf 40 800 Td\n{shown}ET".encode("cp1252")


def content_pdf(body: bytes, resources: str = "", more: Sequence[bytes] = (), box: str = "0 0 595 842") -> bytes:
    """One page with this (deflated) content. Objects of `more` are numbered from 5."""
    return assemble(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents 4 0 R/Resources<<{resources}>>>>".encode(),
            stream(body, deflate=True),
            *more,
        ]
    )


def scanned_pdf(pages: int = 1, texts: Sequence[str] = ()) -> bytes:
    """Pages that are only painted, followed by pages of text."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    kids = []
    for body in [b"1 0 0 rg 100 100 300 300 re f"] * pages + [_lines(text) for text in texts]:
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {len(objects) + 2} 0 R"
            "/Resources<</Font<</F 3 0 R>>>>>>".encode()
        )
        objects.append(stream(body))
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>".encode()
    return assemble(objects)


def packed_liar(pages: int) -> bytes:
    """Says one page; holds many, out of sight in a compressed object stream."""
    bodies = [f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/N {index}>> ".encode() for index in range(pages)]
    offsets = [sum(map(len, bodies[:index])) for index in range(pages)]
    head = " ".join(f"{100 + index} {offset}" for index, offset in enumerate(offsets)).encode() + b" "
    packed = stream(head + b"".join(bodies), f"/Type/ObjStm/N {pages}/First {len(head)}", deflate=True)
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>"]
    return assemble([*objects, b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>", packed])


_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def form_pdf(
    values: Sequence[tuple[str, str]] = (("Nome", "Più Rossi"),), comment: str = "Firmare qui.", page: bytes = b""
) -> bytes:
    """A filled form: text fields that no content of the page repeats, a ticked box, a comment and a hidden one."""
    hexed = [value.encode("utf-16-be").hex() for _, value in values]
    fields = [
        f"<</Type/Annot/Subtype/Widget/FT/Tx/T({name})/V<FEFF{told}>/DA(/F 12 Tf 0 g)/F 4/P 3 0 R"
        f"/Rect[40 {700 - 40 * at} 400 {730 - 40 * at}]>>".encode()
        for at, ((name, _), told) in enumerate(zip(values, hexed, strict=True))
    ]
    box = b"<</Type/Annot/Subtype/Widget/FT/Btn/T(Privacy)/V/Yes/AS/Yes/F 4/P 3 0 R/Rect[40 100 60 120]"
    box += b"/AP<</N<</Yes 6 0 R>>>>>>"
    said = (
        f"<</Type/Annot/Subtype/Text/T(Ada)/Contents<FEFF{comment.encode('utf-16-be').hex()}>/Rect[400 800 420 820]>>"
    )
    unseen = b"<</Type/Annot/Subtype/Text/F 2/Contents(hidden words)/Rect[1 1 9 9]>>"
    link = b"<</Type/Annot/Subtype/Link/Contents(a link)/Rect[1 1 9 9]>>"
    notes = [*fields, box, said.encode(), unseen, link]
    names = " ".join(f"{7 + at} 0 R" for at in range(len(notes)))
    form = " ".join(f"{7 + at} 0 R" for at in range(len(fields) + 1))
    return assemble(
        [
            f"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[{form}]/NeedAppearances true"
            "/DR<</Font<</F 5 0 R>>>>>>>>".encode(),
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Annots[{names}]"
            "/Resources<</Font<</F 5 0 R>>>>>>".encode(),
            stream(page or _lines("Modulo di iscrizione.")),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
            stream(b"0 0 20 20 re f", "/Type/XObject/Subtype/Form/BBox[0 0 20 20]"),
            *notes,
        ]
    )


def encrypted_pdf(password: str = "nobody knows it") -> bytes:
    """Protected by a password to open it; an empty one leaves only the owner's, so that anybody may read it."""
    user, owner = ((secret.encode() + _PADDING)[:32] for secret in (password, "the owner's"))
    told = rc4(hashlib.md5(owner).digest()[:5], user)
    name = bytes(range(16))
    key = hashlib.md5(user + told + struct.pack("<i", -4) + name).digest()[:5]
    text = rc4(hashlib.md5(key + b"\x05\x00\x00\x00\x00").digest()[:10], _lines("Readable by anybody.\n" * 20))
    guard = f"<</Filter/Standard/V 1/R 2/P -4/O<{told.hex()}>/U<{rc4(key, _PADDING).hex()}>>>"
    page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 5 0 R/Resources<</Font<</F 3 0 R>>>>>>"
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[4 0 R]/Count 1>>", font]
    objects += [page.encode(), stream(text), guard.encode()]
    return assemble(objects, f"/Encrypt 6 0 R/ID[<{name.hex()}><{name.hex()}>]")


def rc4(key: bytes, data: bytes) -> bytes:
    """The cipher of the oldest protected PDFs."""
    box, at = list(range(256)), 0
    for index in range(256):
        at = (at + box[index] + key[index % len(key)]) & 255
        box[index], box[at] = box[at], box[index]
    out, one, two = bytearray(), 0, 0
    for value in data:
        one = (one + 1) & 255
        two = (two + box[one]) & 255
        box[one], box[two] = box[two], box[one]
        out.append(value ^ box[(box[one] + box[two]) & 255])
    return bytes(out)


def inflating_bomb(size: int = 200 * 1024) -> bytes:
    """A page whose content, of about `size` bytes, grows by three orders of magnitude into drawing operators."""
    return content_pdf(b"0 0 m 1 1 l S\n" * (size * 900 // 14))


def form_bomb(levels: int = 12, width: int = 10) -> bytes:
    """Forms that each draw the next one ten times: a million million rectangles in a few KB."""
    forms = []
    for level in range(levels):
        last = level == levels - 1
        body = b"0 0 1 1 re f " if last else b"/X Do " * width
        nested = "" if last else f"/Resources<</XObject<</X {6 + level} 0 R>>>>"
        forms.append(stream(body, f"/Type/XObject/Subtype/Form/BBox[0 0 9 9]{nested}"))
    return content_pdf(b"/X Do", "/XObject<</X 5 0 R>>", forms)


def nested_pdf(depth: int = 100_000) -> bytes:
    """An array within an array within an array."""
    return content_pdf(b"[" * depth + b"]" * depth + b" TJ", f"/Deep {'[' * depth}{']' * depth}")


def circular_pdf() -> bytes:
    """A page tree that is its own child."""
    return assemble([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"])


def png_header(width: int, height: int, bits: int = 1) -> bytes:
    """Signature and header of a grey PNG."""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0))


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def bomb_png(side: int = 30_000) -> bytes:
    """One bit a pixel, about 110 KB on the wire."""
    packer = zlib.compressobj(9)
    row = bytes(1 + side // 8)
    body = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    return png_header(side, side) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def photo(kind: str, size: tuple[int, int] = (40, 20), orientation: int | None = None) -> bytes:
    """A picture whose left half is red and right half blue, as stored."""
    picture = Image.new("RGB", size, "blue")
    picture.paste("red", (0, 0, size[0] // 2, size[1]))
    out = io.BytesIO()
    if orientation is None:
        picture.save(out, kind)
    else:
        exif = Image.Exif()
        exif[0x0112] = orientation
        exif[0x010F] = "Camera with a secret serial number"
        picture.save(out, kind, exif=exif)
    return out.getvalue()


# 64 by 32 pixels, left half red, stored lying down and marked to be turned by 90 degrees, as a telephone does.
_ROTATED_HEIC = (
    b"c-mc2u}T9$5S_g<$qAZ>8i*nxv5;UP1}rRtiDmvFm(3j+xJ%Z{5n`nQ5d;e>TT^K%SgD0*C;osof}mK41PhB4$~k*?ie%W?nR)Ye"
    b"cXkE<=1g}})D7f7VxyUtzKyyGz;12B)gh2<y=FO~4+6OhL$ZQa)4!xt00o%z*n40}<_RNF;(y4hRK$kqM>3nF!0>6rskeC^{(($V"
    b");s9a;{sh9LMDr$a0L0UD0q`>o6Z)QDxm|Pl>UIP@4)~dp;qWbs=&sW=ShMp8LC|AOQoPwa&e8Zp-eB+jU2wc9ABJk_2mpfs@x!3"
    b"C3>{PZd%uS^vD!%T26yo9YV(;x=qkDwuBLWw-9QMTe=8+*@{eP{U&&x_Y^i`LSP3asA`%<W)z*KOZC7E3j22`3|O?QsF9sr3TDwU"
    b"%rFt>wHEisAn&f)HC@gtonxmXslnaGz4v)`bk$pWc&=<cCQtS)FVgRO#E1qRE|+1EA`KLl@T-ZDF0e`25c%ogk)m!J4wdo)F@I?B"
)


def rotated_heic() -> bytes:
    """A HEIC photo that is 32 by 64 when upright, red above blue, with a camera name in its metadata."""
    return zlib.decompress(base64.b85decode(_ROTATED_HEIC))
