"""Server-sent events from bytes, exactly: any split, any line end, no I/O.

Works on bytes throughout, so a character cut between two reads needs no care: events are whole before anyone decodes.
"""

from __future__ import annotations

from typing import NamedTuple

from crocevia.core.errors import GatewayError, Reason

MAX_EVENT = 32 * 2**20

BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """`name` is empty when the stream gave none; `data` lines are joined by a line feed."""

    name: bytes
    data: bytes


class SseDecoder:
    """Feed reads in, get complete events out. `limit`: bytes that one event may take, its field names included."""

    __slots__ = ("_after_cr", "_held", "_limit", "_scanned", "_start")

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._held = bytearray()
        self._scanned = 0
        self._after_cr = False
        self._start: bytes | None = b""

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes. Raises GatewayError(UPSTREAM_FAILED) beyond `limit`."""
        if self._start is not None:
            data = self._strip_bom(data)
        if self._after_cr or b"\r" in data:
            data = self._line_feeds(data)
        if not data:
            return []
        held = self._held
        if not held:
            end = data.rfind(b"\n\n")
            if end < 0:
                self._hold(data, 0)
                return []
            complete = data[:end]
            if end + 2 < len(data):
                self._hold(data, end + 2)
        else:
            held += data
            # What was scanned is never scanned again: an event of megabytes costs one pass.
            end = held.rfind(b"\n\n", max(self._scanned - 1, 0))
            if end < 0:
                self._hold(b"", 0)
                return []
            complete = bytes(held[:end])
            del held[: end + 2]
            self._hold(b"", 0)
        return self._events(complete)

    def flush(self) -> list[SseEvent]:
        """At a clean end: the last event, if its lines are complete and only the blank line is missing."""
        complete = bytes(self._held)
        self._held.clear()
        self._scanned = 0
        return self._events(complete[:-1]) if complete.endswith(b"\n") else []

    def _events(self, complete: bytes) -> list[SseEvent]:
        events: list[SseEvent] = []
        complete = well_formed(complete)
        for block in complete.split(b"\n\n"):
            if len(block) > self._limit:
                raise self._too_large()
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append(SseEvent(b"", block[6:]))
            elif (event := _event(block)) is not None:
                events.append(event)
        return events

    def _hold(self, data: bytes, start: int) -> None:
        self._held += memoryview(data)[start:]
        self._scanned = len(self._held)
        # One byte more than the limit may be the first half of the blank line.
        if self._scanned > self._limit + 1:
            raise self._too_large()

    def _line_feeds(self, data: bytes) -> bytes:
        """Every line end as one line feed; a CR at the end of a read counts at once and swallows a LF that follows."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            if not data:
                self._after_cr = False
                return data
        if data:
            self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _strip_bom(self, data: bytes) -> bytes:
        assert self._start is not None
        data = self._start + data
        if len(data) < len(BOM) and BOM.startswith(data):
            self._start = data
            return b""
        self._start = None
        return data.removeprefix(BOM)

    def _too_large(self) -> GatewayError:
        return GatewayError(Reason.UPSTREAM_TOO_LARGE, limit=self._limit)


def well_formed(data: bytes) -> bytes:
    """The bytes as UTF-8, what is no character replaced by U+FFFD, as the standard of event streams has it.

    Nothing later checks what is passed on as it came (`msgspec.Raw`), so it is checked where it is taken in.
    """
    if data.isascii():
        return data
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode()
    return data


def _event(block: bytes) -> SseEvent | None:
    name = b""
    lines: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            lines.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    return SseEvent(name, lines[0] if len(lines) == 1 else b"\n".join(lines)) if lines else None
