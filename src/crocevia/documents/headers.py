"""The size of a picture from its first bytes, before anything decodes it, and whether its end is there.

By hand: a library may take seconds over a hostile file or pass one that was cut short, and a worker costs a process.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import msgspec

_MAX_STEPS = 4096
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
_SCAN = 0xDA


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Pixels across and down, as stored."""

    width: int
    height: int


def read_header(data: bytes, media_type: str) -> Header:
    """The header of a picture of a sniffed type. Raises ValueError if it is damaged, empty or cut short."""
    try:
        header = _READERS[media_type](data)
    except (struct.error, IndexError):
        raise ValueError("cut short") from None
    if header.width < 1 or header.height < 1:
        raise ValueError("no pixels")
    return header


def _png(data: bytes) -> Header:
    width, height = struct.unpack_from(">II", data, 16)
    if data[12:16] != b"IHDR" or data.rfind(b"IEND") < 0:
        raise ValueError("not a whole PNG")
    return Header(width=width, height=height)


def _gif(data: bytes) -> Header:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    at = 13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    for _ in range(_MAX_STEPS):
        if data[at] == 0x2C:
            across, down = struct.unpack_from("<HH", data, at + 5)
            # A frame may claim more than its screen; the larger claim is what a decoder would allocate.
            return Header(width=max(width, across), height=max(height, down))
        if data[at] != 0x21:
            break
        at += 2
        while data[at]:
            at += data[at] + 1
        at += 1
    raise ValueError("no frame")


def _jpeg(data: bytes) -> Header:
    size: tuple[int, int] | None = None
    for marker, start in _segments(data):
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, start + 1)
            size = (width, height)
        elif marker == _SCAN and size and data.rfind(b"\xff\xd9") > start:
            return Header(width=size[0], height=size[1])
    raise ValueError("no whole picture")


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """(marker, start) of each segment's content up to the first scan."""
    at = 2
    for _ in range(_MAX_STEPS):
        if data[at] != 0xFF:
            raise ValueError("no marker")
        marker = data[at + 1]
        if marker == 0xFF or marker in _BARE:
            at += 1 if marker == 0xFF else 2
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        yield marker, at + 4
        if marker == _SCAN:
            return
        at += 2 + max(length, 2)


def _webp(data: bytes) -> Header:
    (told,) = struct.unpack_from("<I", data, 4)
    if told + 8 > len(data):
        raise ValueError("cut short")
    kind = data[12:16]
    if kind == b"VP8X":
        width = int.from_bytes(data[24:27], "little") + 1
        height = int.from_bytes(data[27:30], "little") + 1
    elif kind == b"VP8L" and data[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", data, 21)
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, 26))
    else:
        raise ValueError("no frame")
    return Header(width=width, height=height)


def _heif(data: bytes) -> Header:
    extents = [
        struct.unpack_from(">II", data, start + 4)
        for start, _ in _find(data, 0, len(data), (b"meta", b"iprp", b"ipco", b"ispe"))
    ]
    if not extents:
        raise ValueError("no extent")
    # Tiles and thumbnails have extents of their own; the largest one is the picture.
    width, height = max(extents, key=lambda extent: extent[0] * extent[1])
    return Header(width=width, height=height)


def _find(data: bytes, at: int, end: int, path: tuple[bytes, ...]) -> Iterator[tuple[int, int]]:
    """(start, end) of the content of every box at the end of `path`."""
    for kind, start, stop in _boxes(data, at, end):
        if kind != path[0]:
            continue
        if len(path) == 1:
            yield start, stop
        else:
            yield from _find(data, start + (4 if kind == b"meta" else 0), stop, path[1:])


def _boxes(data: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    for _ in range(_MAX_STEPS):
        if at + 8 > end:
            return
        size, kind = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", data, at + 8)
            head = 16
        stop = end if size == 0 else at + size
        if (size and size < head) or stop > end:
            raise ValueError("a box longer than its file")
        yield kind, at + head, stop
        at = stop


_READERS: dict[str, Callable[[bytes], Header]] = {
    "image/png": _png,
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
    "image/heic": _heif,
    "image/heif": _heif,
}
