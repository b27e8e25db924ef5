"""A multipart form with one file, handed on while it comes."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator
from typing import Final

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from crocevia.asgi.body import too_large
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.atp.caller import Request

_OVERHEAD: Final = 64 * 1024  # bytes of a form around its file
_MAX_BOUNDARY: Final = 70
_MAX_NAME: Final = 255


class FileForm:
    """The one file of a request. `name` is known with its first piece. limit: bytes of the file."""

    def __init__(self, request: Request, limit: int) -> None:
        self.name = ""
        self._request = request
        self._limit = limit
        self._size = 0
        self._headers: dict[str, bytes] = {}
        self._field = self._value = b""
        self._parts = 0
        self._complete = False
        self._ready: list[bytes] = []

    async def pieces(self) -> AsyncIterator[bytes]:
        """The file's bytes. Raises GatewayError: INVALID_REQUEST (not such a form), TOO_LARGE; ClientGone."""
        parser = MultipartParser(
            _boundary(self._request),
            {
                "on_part_begin": self._begin,
                "on_header_field": self._on_field,
                "on_header_value": self._on_value,
                "on_header_end": self._on_header,
                "on_headers_finished": self._on_headers,
                "on_part_data": self._on_data,
                "on_end": self._on_end,
            },
        )
        async for piece in self._request.pieces(self._limit + _OVERHEAD):
            try:
                parser.write(piece)
            except MultipartParseError:
                raise _malformed() from None
            ready, self._ready = self._ready, []
            for data in ready:
                yield data
        if not self._complete:
            raise _malformed()
        if not self._parts:
            raise GatewayError(Reason.FIELD_MISSING, param="file")

    def _begin(self) -> None:
        self._parts += 1
        self._headers = {}

    def _on_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header(self) -> None:
        self._headers[self._field.decode("latin-1").lower()] = self._value
        self._field = self._value = b""

    def _on_headers(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        if options.get(b"name") != b"file" or b"filename" not in options:
            raise GatewayError(
                Reason.FIELD_UNKNOWN, param=options.get(b"name", b"body").decode("utf-8", "replace")[:100] or "body"
            )
        if self._parts > 1:
            raise GatewayError(Reason.GIVEN_TWICE, param="file")
        self.name = _name(options[b"filename"])

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        if self._size > self._limit:
            raise too_large(self._limit)
        self._ready.append(data[start:end])

    def _on_end(self) -> None:
        self._complete = True


def _boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.header(b"content-type") or b"")
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= _MAX_BOUNDARY:
        raise GatewayError(Reason.FORM_NEEDED, param="file")
    return boundary


def _name(raw: bytes) -> str:
    """The last part of the file's name: some send a path. Raises GatewayError(INVALID_REQUEST)."""
    try:
        name = raw.decode().replace("\\", "/").rpartition("/")[2]
    except UnicodeDecodeError:
        raise GatewayError(Reason.FILE_NAME_WRONG, param="file") from None
    hidden = any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name)
    if not 0 < len(name) <= _MAX_NAME or hidden or not name.strip(". "):
        raise GatewayError(Reason.FILE_NAME_WRONG, param="file")
    return name


def _malformed() -> GatewayError:
    return GatewayError(Reason.FORM_MALFORMED, param="file")
