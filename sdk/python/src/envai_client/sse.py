"""Server-sent events out of bytes, however the network cut them."""

from __future__ import annotations

import re

from .errors import InvalidFrameError

LINE_END = re.compile(rb"\r\n|\n|\r")
BOM = b"\xef\xbb\xbf"


class SSEDecoder:
    """Feed bytes, get the `data` of each completed event. Comments and other fields are read and dropped.

    A frame left open at the end of the stream is incomplete and never delivered. Raises InvalidFrameError beyond
    `max_frame` bytes.
    """

    __slots__ = ("_after_cr", "_buffer", "_data", "_size", "_started", "max_frame")

    def __init__(self, max_frame: int = 16 * 1024 * 1024) -> None:
        self.max_frame = max_frame
        self._buffer = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._started = False
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that `chunk` completes, as UTF-8 bytes."""
        if self._after_cr and chunk:
            chunk = chunk[1:] if chunk.startswith(b"\n") else chunk
            self._after_cr = False
        buffer = self._buffer
        scanned = len(buffer)
        buffer += chunk
        if not self._started:
            if not self._skip_bom():
                return []
            scanned = 0
        out: list[bytes] = []
        start = 0
        while match := LINE_END.search(buffer, scanned):
            self._line(bytes(buffer[start : match.start()]), out)
            start = scanned = match.end()
            # A CR ends the line at once; the LF of a CRLF may still be on its way.
            self._after_cr = match.group() == b"\r" and start == len(buffer)
        del buffer[:start]
        if len(buffer) + self._size > self.max_frame:
            raise InvalidFrameError(f"an event is larger than {self.max_frame} bytes")
        return out

    def _skip_bom(self) -> bool:
        if len(self._buffer) < len(BOM) and BOM.startswith(self._buffer):
            return False
        if self._buffer.startswith(BOM):
            del self._buffer[: len(BOM)]
        self._started = True
        return True

    def _line(self, line: bytes, out: list[bytes]) -> None:
        if not line:
            if self._data:
                out.append(b"\n".join(self._data))
                self._data = []
            self._size = 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value[1:] if value.startswith(b" ") else value
            self._data.append(value)
            self._size += len(value)
            if self._size > self.max_frame:
                raise InvalidFrameError(f"an event is larger than {self.max_frame} bytes")
