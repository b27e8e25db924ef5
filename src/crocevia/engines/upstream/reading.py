"""From the bytes of one answer to its events, without waiting: what the driver does between two reads.

The bytes decide what they are, whatever they are labelled: an event stream, or one JSON body.
"""

from __future__ import annotations

from typing import Final, Protocol

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import ModelEvent
from crocevia.engines.upstream import errors, halves
from crocevia.engines.upstream.halves import Halves
from crocevia.engines.upstream.sse import BOM, SseDecoder, SseEvent, well_formed
from crocevia.engines.upstream.think_tags import ThinkTags

MAX_ANSWER: Final = 64 * 2**20
"""Bytes of one answer, as it comes: 128,000 tokens, each in an event of its own, stay below."""
MAX_BODY: Final = 32 * 2**20

_STREAM_BEGINS: Final = b"deir:"  # data, event, id, retry, a comment; no JSON begins so
_BODY_BEGINS: Final = b'{["<'


class Decoder(Protocol):
    """The state of one answer. Events go to `out`; a failure inside the answer is raised as GatewayError."""

    started: bool
    """The provider has begun to generate, though there may be nothing to show yet."""
    stopped: bool
    """`Stopped` was emitted; nothing follows."""

    def feed(self, event: SseEvent, out: list[ModelEvent]) -> None:
        """An event that cannot be read at all has changed nothing when it is refused (UPSTREAM_MALFORMED)."""
        ...

    def finish(self, out: list[ModelEvent]) -> None:
        """The stream has ended cleanly. Leaves `stopped` False when the answer was not complete."""
        ...

    def whole(self, body: bytes, out: list[ModelEvent]) -> None:
        """The same answer as one JSON body."""
        ...


class AnswerReader:
    """Feed reads in until `decoder.stopped`; then, or at the end of the bytes, `end()`.

    stream: pieces were asked for, which decides only what begins like neither. think_tags: see `ThinkTags`.
    Both raise GatewayError; what came before it is in `out` by then.
    """

    __slots__ = ("_body", "_halves", "_head", "_limit", "_size", "_sse", "_stream", "_tags", "decoder")

    def __init__(self, decoder: Decoder, *, stream: bool, think_tags: bool = False, limit: int = MAX_ANSWER) -> None:
        self.decoder = decoder
        self._stream = stream
        self._limit = limit
        self._size = 0
        self._head = b""
        self._sse: SseDecoder | None = None
        self._body: list[bytes] | None = None
        self._halves: Halves | None = None
        self._tags = ThinkTags() if think_tags else None

    def feed(self, data: bytes, out: list[ModelEvent]) -> None:
        """The events that `data` completes."""
        self._size += len(data)
        if self._size > self._limit:
            raise GatewayError(Reason.UPSTREAM_ANSWER_TOO_LARGE, limit=self._limit)
        sse = self._sse
        if sse is None:
            sse, data = self._recognise(data)
            if sse is None:
                return
        decoder, first = self.decoder, len(out)
        try:
            for event in sse.feed(data):
                try:
                    decoder.feed(event, out)
                except GatewayError as failure:
                    self._again(event, failure, out)
                if decoder.stopped:
                    break
        finally:
            if self._tags is not None or self._halves is not None:
                out[first:] = self._told(out[first:])

    def end(self, out: list[ModelEvent]) -> None:
        """No more bytes: the rest of the events, up to `Stopped`."""
        decoder, first = self.decoder, len(out)
        try:
            if self._sse is None:
                self._whole(out)
                return
            for event in self._sse.flush():
                if not decoder.stopped:
                    decoder.feed(event, out)
            if not decoder.stopped:
                decoder.finish(out)
            if not decoder.stopped:
                raise errors.cut()
        finally:
            if self._tags is not None or self._halves is not None:
                out[first:] = self._told(out[first:])

    def _recognise(self, data: bytes) -> tuple[SseDecoder | None, bytes]:
        """The decoder of the stream that this begins, with its bytes; None where it is a body, or not decided yet."""
        if self._body is not None:
            self._body.append(data)
            if self._size > MAX_BODY:
                raise GatewayError(Reason.UPSTREAM_TOO_LARGE, limit=MAX_BODY)
            return None, b""
        head = self._head + data
        if len(head) < len(BOM) and BOM.startswith(head):
            self._head = head
            return None, b""
        head = head.removeprefix(BOM).lstrip()
        self._head = b""
        first = head[:1]
        if not first:
            return None, b""
        if first in _STREAM_BEGINS or (self._stream and first not in _BODY_BEGINS):
            self._sse = SseDecoder()
            return self._sse, head
        self._body = [head]
        return None, b""

    def _whole(self, out: list[ModelEvent]) -> None:
        if self._body is None:
            raise errors.cut() if self._stream else errors.malformed()
        body = well_formed(b"".join(self._body))
        try:
            self.decoder.whole(body, out)
        except GatewayError as failure:
            text = halves.without(body)
            if failure.reason is not Reason.UPSTREAM_MALFORMED or text == body:
                raise
            self.decoder.whole(text, out)

    def _again(self, event: SseEvent, failure: GatewayError, out: list[ModelEvent]) -> None:
        """An event that cannot be read: a blank one says nothing, and one with half a character is mended."""
        if failure.reason is not Reason.UPSTREAM_MALFORMED:
            raise failure
        if not event.data.strip():
            return
        data = halves.mended(event.data)
        if data == event.data:
            raise failure
        if self._halves is None:
            self._halves = Halves()
        self.decoder.feed(SseEvent(event.name, data), out)

    def _told(self, events: list[ModelEvent]) -> list[ModelEvent]:
        if self._halves is not None:
            events = self._halves.settled(events)
        return events if self._tags is None else self._tags.told_apart(events)
