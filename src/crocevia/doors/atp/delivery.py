"""Answers that are files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import IO, Final
from urllib.parse import quote

from crocevia.asgi.http import Stream
from crocevia.asgi.types import Headers

_PIECE: Final = 256 * 1024


def attachment(name: str, media_type: str, size: int) -> Headers:
    """The headers of a file to be kept, not shown: name, type, length."""
    kind = f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type
    plain = "".join(sign if " " <= sign <= "~" and sign not in '"\\%' else "_" for sign in name)
    disposition = f'attachment; filename="{plain}"'
    if plain != name:
        disposition += f"; filename*=UTF-8''{quote(name, safe='')}"
    return (
        (b"content-type", kind.encode()),
        (b"content-length", b"%d" % size),
        (b"content-disposition", disposition.encode()),
    )


def deliver(file: IO[bytes], headers: Headers, size: int) -> Stream:
    """The first `size` bytes of a file, piece by piece; it is closed at the end, whatever happens."""
    return Stream(_pieces(file, size), headers)


def deliver_bytes(data: bytes, headers: Headers) -> Stream:
    """What is in memory already."""
    return Stream(_once(data), headers)


async def _pieces(file: IO[bytes], size: int) -> AsyncIterator[bytes]:
    try:
        while size > 0 and (piece := await asyncio.to_thread(file.read, min(_PIECE, size))):
            size -= len(piece)
            yield piece
    finally:
        file.close()


async def _once(data: bytes) -> AsyncIterator[bytes]:
    view = memoryview(data)
    for at in range(0, len(data), _PIECE):
        yield bytes(view[at : at + _PIECE])
