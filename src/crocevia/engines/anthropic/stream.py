"""Anthropic's answers: stream events or one body to model events.

Every content block also leaves as an `ProviderBlock`, as the provider spelled it: whole bodies verbatim; streamed ones
from their start (with fields unknown to us) and their deltas, the tool input as the very bytes that came.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw

from crocevia.core.events import (
    TRUNCATING,
    ModelEvent,
    ProviderBlock,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageReported,
)
from crocevia.core.messages import ToolCall
from crocevia.core.usage import Usage
from crocevia.engines.anthropic import citations
from crocevia.engines.upstream import counts, endings, shapes
from crocevia.engines.upstream import errors as upstream_errors
from crocevia.engines.upstream.sse import SseEvent

DIALECT = "anthropic"

_STOPS: Final = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
    "refusal": StopReason.REFUSAL,
    # With tools of the provider's own, which nobody here asked for: there would be more, and it is not known.
    "pause_turn": StopReason.INCOMPLETE,
}
_THOUGHTS = ("thinking", "redacted_thinking")
_BREAKS = (*_THOUGHTS, "tool_use")
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "thinking_tokens")


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    content: str | None = None
    citation: Raw = Raw()
    stop_reason: str | None = None


class _Message(msgspec.Struct):
    usage: Any = None
    content: list[Raw] | None = None
    stop_reason: str | None = None
    type: str = "message"
    error: Any = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int | None = None
    delta: _Delta | None = None
    content_block: Raw = Raw()
    message: _Message | None = None
    usage: Any = None
    error: Any = None


class _Block(msgspec.Struct):
    """The fields of a block that mean something here; the rest travels in its raw form."""

    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    input: Raw = Raw(b"{}")
    citations: Raw = Raw()


_event = msgspec.json.Decoder(_Event)
_block = msgspec.json.Decoder(_Block)
_fields = msgspec.json.Decoder(dict[str, Raw])


class AnthropicDecoder:
    """One answer. See `reading.Decoder`.

    Blocks may be open side by side: what continues one names its index. They leave in the order of their starts.
    """

    def __init__(self) -> None:
        self.started = False
        self.stopped = False
        self._counted: dict[str, int] = {}
        self._stop: str | None = None
        self._calls = 0
        self._said = 0  # characters since the last thought or call: where a citation's text stands
        self._open: dict[int | None, _OpenBlock] = {}  # None: what came without an index, one at a time
        self._unsent: deque[_OpenBlock] = deque()

    def feed(self, event: SseEvent, out: list[ModelEvent]) -> None:
        try:
            parsed = _event.decode(event.data)
            if (handle := self._HANDLERS.get(parsed.type)) is not None:
                handle(self, parsed, out)
        # Also of what was taken in as it came: a piece of JSON is only checked when it is read.
        except upstream_errors.UNREADABLE:
            raise upstream_errors.malformed() from None

    def finish(self, out: list[ModelEvent]) -> None:
        """Only `message_stop` completes an answer; it was not there."""

    def whole(self, body: bytes, out: list[ModelEvent]) -> None:
        try:
            message = msgspec.json.decode(body, type=_Message)
            if message.type != "message":
                raise upstream_errors.from_stream(message.error)
            if message.content is None:
                raise upstream_errors.malformed()
            self.started = True
            self._stop = message.stop_reason
            self._whole_blocks([(_block.decode(raw), raw) for raw in message.content], out)
        except upstream_errors.UNREADABLE:
            raise upstream_errors.malformed() from None
        self._report(message.usage, out)
        self._end(None, out)

    def _whole_blocks(self, blocks: list[tuple[_Block, Raw]], out: list[ModelEvent]) -> None:
        stopped = endings.stopped(self._stop, _STOPS, calls=False)
        if stopped.reason in TRUNCATING and blocks and blocks[-1][0].type == "tool_use":
            # One body does not tell whether the limit fell inside the call or after it.
            del blocks[-1]
        for block, raw in blocks:
            self._whole_block(block, raw, out)

    def _whole_block(self, block: _Block, raw: Raw, out: list[ModelEvent]) -> None:
        if block.text:
            out.append(TextDelta(block.text))
        if block.thinking:
            out.append(ReasoningDelta(block.thinking))
        self._cite(block, len(block.text), citations.listed(block.citations), out)
        if block.type == "tool_use":
            spelled = bytes(block.input).decode()
            number, self._calls = self._calls, self._calls + 1
            out.append(ToolCallStarted(number, block.id, block.name))
            out.append(ToolCallDelta(number, spelled))
            out.append(_done(number, block, spelled))
        out.append(ProviderBlock(DIALECT, raw.copy(), block.type in _THOUGHTS))

    def _begin_message(self, event: _Event, out: list[ModelEvent]) -> None:
        if event.message is not None:
            self._report(event.message.usage, out)

    def _begin_block(self, event: _Event, out: list[ModelEvent]) -> None:
        self.started = True
        self._end_block(event, out)  # for servers that leave its stop out
        self._settle(out)
        opened = _OpenBlock(_block.decode(event.content_block), event.content_block.copy(), self._calls)
        block = opened.block
        self._open[event.index] = opened
        self._unsent.append(opened)
        if block.type == "tool_use":
            self._calls += 1
            if block.id and block.name:
                out.append(ToolCallStarted(opened.number, block.id, block.name))
        elif block.text:
            out.append(TextDelta(block.text))
        elif block.thinking:
            out.append(ReasoningDelta(block.thinking))

    def _continue_block(self, event: _Event, out: list[ModelEvent]) -> None:
        delta, opened = event.delta, self._open.get(event.index)
        if opened is None and event.index is None:
            opened = next(reversed(self._open.values()), None)
        if delta is None or opened is None:
            raise upstream_errors.malformed()
        kind = delta.type
        if kind == "text_delta":
            opened.add("text", delta.text)
            if delta.text:
                out.append(TextDelta(delta.text))
        elif kind == "input_json_delta":
            opened.add("input", delta.partial_json)
            if delta.partial_json and opened.block.type == "tool_use":
                out.append(ToolCallDelta(opened.number, delta.partial_json))
        else:
            self._continue_rarely(delta, opened, out)

    def _continue_rarely(self, delta: _Delta, opened: _OpenBlock, out: list[ModelEvent]) -> None:
        if delta.type == "thinking_delta":
            opened.add("thinking", delta.thinking)
            if delta.thinking:
                out.append(ReasoningDelta(delta.thinking))
        elif delta.type == "signature_delta":
            opened.add("signature", delta.signature)
        elif delta.type == "citations_delta" and bytes(delta.citation):
            opened.citations.append(delta.citation.copy())
        elif delta.type == "compaction_delta" and delta.content:
            opened.add("content", delta.content)

    def _end_block(self, event: _Event, out: list[ModelEvent]) -> None:
        opened = self._open.pop(event.index, None)
        if opened is not None:
            opened.ended = True
            # Empty or unparsable so far: whether that is an error, `{}` or the output limit shows only later.
            if opened.block.type != "tool_use" or shapes.is_object(opened.continued("input")):
                opened.complete = True
                self._send(out)

    def _settle(self, out: list[ModelEvent]) -> None:
        """Another block begins, so that no limit cut those that have ended: they are all there is of them."""
        for opened in self._unsent:
            opened.complete = opened.complete or opened.ended
        self._send(out)

    def _send(self, out: list[ModelEvent]) -> None:
        while self._unsent and self._unsent[0].complete:
            self._emit(self._unsent.popleft(), out)

    def _emit(self, opened: _OpenBlock, out: list[ModelEvent]) -> None:
        block = opened.block
        if block.type == "tool_use":
            # Some servers put the input into the start of the block and send no fragments.
            spelled = opened.continued("input") or bytes(block.input).decode()
            out.append(_done(opened.number, block, spelled))
        found = [*citations.listed(block.citations), *opened.citations]
        self._cite(block, len(block.text) + opened.length("text"), found, out)
        out.append(ProviderBlock(DIALECT, opened.rebuilt(), block.type in _THOUGHTS))

    def _cite(self, block: _Block, said: int, found: list[Raw], out: list[ModelEvent]) -> None:
        """The pages behind a block of text that has ended."""
        if block.type != "text":
            self._said = 0 if block.type in _BREAKS else self._said
            return
        out += citations.pages(found, self._said, self._said + said)
        self._said += said

    def _change_message(self, event: _Event, out: list[ModelEvent]) -> None:
        if event.delta is not None and event.delta.stop_reason is not None:
            self._stop = event.delta.stop_reason
        self._report(event.usage, out)

    def _end(self, event: _Event | None, out: list[ModelEvent]) -> None:
        stopped = endings.stopped(self._stop, _STOPS, calls=self._calls > 0)
        truncated = stopped.reason in TRUNCATING
        for opened in self._unsent:
            unfinished = opened.block.type == "tool_use" and not shapes.is_object(opened.continued("input"))
            opened.dropped = truncated and unfinished and not opened.complete
        self._unsent = deque(opened for opened in self._unsent if not opened.dropped)
        for opened in self._unsent:
            opened.complete = True
        self._send(out)
        out.append(stopped)
        self.stopped = True

    def _fail(self, event: _Event, out: list[ModelEvent]) -> None:
        raise upstream_errors.from_stream(event.error)

    def _report(self, later: Any, out: list[ModelEvent]) -> None:
        """Figures are cumulative, each replacing the one before. The provider leaves the cache out of its input."""
        if not isinstance(later, dict):
            return
        known = self._counted
        details = later.get("output_tokens_details")
        for name in _COUNTS:
            value = counts.figure((later if name in later or not isinstance(details, dict) else details).get(name))
            if value is not None:
                known[name] = value
        fresh, output, read, written, thought = map(known.get, _COUNTS)
        out.append(
            UsageReported(
                Usage(
                    input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
                    output_tokens=output,
                    cache_read_tokens=read,
                    cache_write_tokens=written,
                    reasoning_tokens=thought,
                )
            )
        )

    _HANDLERS: ClassVar[dict[str, Any]] = {
        "message_start": _begin_message,
        "content_block_start": _begin_block,
        "content_block_delta": _continue_block,
        "content_block_stop": _end_block,
        "message_delta": _change_message,
        "message_stop": _end,
        "error": _fail,
    }


class _OpenBlock:
    """A block from its start until it is sent on.

    number: of its call, if it is one. ended: its stop came. complete: and nothing can be missing.
    """

    __slots__ = ("_pieces", "block", "citations", "complete", "dropped", "ended", "number", "raw")

    def __init__(self, block: _Block, raw: Raw, number: int) -> None:
        self.block = block
        self.raw = raw
        self.number = number
        self.ended = self.complete = self.dropped = False
        self.citations: list[Raw] = []
        self._pieces: dict[str, list[str]] = {}

    def add(self, field: str, piece: str) -> None:
        pieces = self._pieces.get(field)
        if pieces is None:
            self._pieces[field] = [piece]
        else:
            pieces.append(piece)

    def continued(self, field: str) -> str:
        return "".join(self._pieces.get(field, ()))

    def length(self, field: str) -> int:
        return sum(map(len, self._pieces.get(field, ())))

    def rebuilt(self) -> Raw:
        """The block as it would stand in a whole answer: its own field order, what was continued in its place."""
        if not self._pieces and not self.citations:
            return self.raw
        fields = _fields.decode(self.raw)
        for field in self._pieces:
            spelled = self.continued(field)
            if field != "input":
                fields[field] = Raw(msgspec.json.encode(_started_with(fields.get(field)) + spelled))
            elif spelled.strip():
                fields[field] = Raw(spelled.encode())
        if self.citations:
            started = msgspec.json.decode(fields.get("citations", b"null"), type=list[Raw] | None)
            fields["citations"] = Raw(msgspec.json.encode([*(started or ()), *self.citations]))
        return Raw(msgspec.json.encode(fields))


def _done(number: int, block: _Block, spelled: str) -> ToolCallDone:
    if not block.id or not block.name:
        raise upstream_errors.malformed()
    call = ToolCall(id=block.id, name=block.name, arguments=shapes.arguments(spelled, block.name))
    return ToolCallDone(number, call)


def _started_with(value: Raw | None) -> str:
    """What a text field held when its block began; usually nothing."""
    return "" if value is None else msgspec.json.decode(value, type=str | None) or ""
