"""Frames of an event stream: `event`, `data` and a blank line, with LF only."""

from __future__ import annotations

from typing import Final

DONE: Final = b"data: [DONE]\n\n"
TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
Frame = tuple[str, bytes]


def heard(stream: bytes) -> list[Frame]:
    """The frames that `sse` made a stream of."""
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
