"""Frames of an event stream: `event`, `data` and a blank line, with LF only."""

from __future__ import annotations

from typing import Final

from crocevia.asgi.types import Headers

DONE: Final = b"data: [DONE]\n\n"
CLOSING: Final[Headers] = ((b"connection", b"close"),)  # for clients that read a stream until there is nothing more
TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
Frame = tuple[str, bytes]


def parsed(stream: bytes) -> list[Frame]:
    """Inverse of `sse`."""
    found = []
    for frame in stream.split(b"\n\n")[:-1]:
        kind, _, data = frame.partition(b"\n")
        found.append((kind.removeprefix(b"event: ").decode(), data.removeprefix(b"data: ")))
    return found


def sse(frames: list[Frame]) -> bytes:
    """Frames as an event stream. A provider's own spelling may hold line breaks between its tokens: here they would
    end the line.
    """
    out = []
    for kind, data in frames:
        if b"\n" in data or b"\r" in data:
            data = data.replace(b"\n", b" ").replace(b"\r", b" ")
        out.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), data))
    return b"".join(out)
