"""Anthropic's answers: stream events or one body to model events.

Every content block also leaves as an `OpaqueBlock`, as the provider spelled it: whole bodies verbatim; streamed ones
from their start (with fields unknown to us) and their deltas, the tool input as the very bytes that came.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import Raw

from crocevia.core.events import (
    ModelEvent,
    OpaqueBlock,
    ReasoningDelta,
    Stopped,
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
from crocevia.engines.upstream import errors as upstream_errors
from crocevia.engines.upstream import shapes
from crocevia.engines.upstream.sse import SseEvent

DIALECT = "anthropic"

_STOPS = {
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
    "refusal": StopReason.REFUSAL,
}
_THOUGHTS = ("thinking", "redacted_thinking")
_BREAKS = (*_THOUGHTS, "tool_use")
_TRUNCATING = (StopReason.MAX_TOKENS, StopReason.REFUSAL)


class _Details(msgspec.Struct):
    thinking_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _Details | None = None


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
    usage: _Usage | None = None
    content: list[Raw] | None = None
    stop_reason: str | None = None
    type: str = "message"
    error: Any = None


class _Event(msgspec.Struct):
    type: str
    delta: _Delta | None = None
    content_block: Raw = Raw()
    message: _Message | None = None
    usage: _Usage | None = None
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
    """One answer. See `driver.Decoder`."""

    def __init__(self) -> None:
        self.started = False
        self.stopped = False
        self._usage = _Usage()
        self._stop: str | None = None
        self._calls = 0
        self._said = 0  # characters since the last thought or call: where a citation's text stands
        self._open: _OpenBlock | None = None
        self._pending: _OpenBlock | None = None

    def feed(self, event: SseEvent, out: list[ModelEvent]) -> None:
        try:
            parsed = _event.decode(event.data)
            if (handle := self._HANDLERS.get(parsed.type)) is not None:
                handle(self, parsed, out)
        # Also of what was taken in as it came: a piece of JSON is only checked when it is read.
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise upstream_errors.malformed() from None

    def finish(self, out: list[ModelEvent]) -> None:
        """Only `message_stop` completes an answer; it was not there."""

    def whole(self, body: bytes, out: list[ModelEvent]) -> None:
        try:
            message = msgspec.json.decode(body, type=_Message)
            blocks = [(_block.decode(raw), raw) for raw in message.content or ()]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise upstream_errors.malformed() from None
        if message.type != "message":
            raise upstream_errors.from_stream(message.error)
        if message.content is None:
            raise upstream_errors.malformed()
        self.started = True
        self._stop = message.stop_reason
        if _reason(message.stop_reason) in _TRUNCATING and blocks and blocks[-1][0].type == "tool_use":
            # One body does not tell whether the limit fell inside the call or after it.
            del blocks[-1]
        for block, raw in blocks:
            self._whole_block(block, raw, out)
        self._report(message.usage, out)
        self._end(None, out)

    def _whole_block(self, block: _Block, raw: Raw, out: list[ModelEvent]) -> None:
        if block.text:
            out.append(TextDelta(block.text))
        if block.thinking:
            out.append(ReasoningDelta(block.thinking))
        self._cite(block, len(block.text), citations.listed(block.citations), out)
        if block.type == "tool_use":
            spelled = bytes(block.input).decode()
            out.append(ToolCallStarted(self._calls, block.id, block.name))
            out.append(ToolCallDelta(self._calls, spelled))
            self._done(block, spelled, out)
        out.append(OpaqueBlock(DIALECT, raw.copy(), block.type in _THOUGHTS))

    def _begin_message(self, event: _Event, out: list[ModelEvent]) -> None:
        if event.message is not None:
            self._report(event.message.usage, out)

    def _begin_block(self, event: _Event, out: list[ModelEvent]) -> None:
        self.started = True
        self._end_block(event, out)  # for servers that leave its stop out
        self._settle(out, truncated=False)
        try:
            opened = self._open = _OpenBlock(_block.decode(event.content_block), event.content_block.copy())
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise upstream_errors.malformed() from None
        block = opened.block
        if block.type == "tool_use":
            out.append(ToolCallStarted(self._calls, block.id, block.name))
        elif block.text:
            out.append(TextDelta(block.text))
        elif block.thinking:
            out.append(ReasoningDelta(block.thinking))

    def _continue_block(self, event: _Event, out: list[ModelEvent]) -> None:
        delta, opened = event.delta, self._open
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
                out.append(ToolCallDelta(self._calls, delta.partial_json))
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

    def _end_block(self, _event: _Event | None, out: list[ModelEvent]) -> None:
        opened, self._open = self._open, None
        if opened is None:
            return
        spelled = opened.continued("input")
        if opened.block.type == "tool_use" and not shapes.is_object(spelled):
            # Empty or unparsable so far: whether that is an error, `{}` or the output limit shows only later.
            self._pending = opened
            return
        self._emit(opened, spelled, out)

    def _cite(self, block: _Block, said: int, found: list[Raw], out: list[ModelEvent]) -> None:
        """The pages behind a block of text that has ended."""
        if block.type != "text":
            self._said = 0 if block.type in _BREAKS else self._said
            return
        out += citations.pages(found, self._said, self._said + said)
        self._said += said

    def _emit(self, opened: _OpenBlock, spelled: str, out: list[ModelEvent]) -> None:
        block = opened.block
        if block.type == "tool_use":
            self._done(block, spelled, out)
        found = [*citations.listed(block.citations), *opened.citations]
        self._cite(block, len(block.text) + opened.length("text"), found, out)
        out.append(OpaqueBlock(DIALECT, opened.rebuilt(), opened.block.type in _THOUGHTS))

    def _done(self, block: _Block, spelled: str, out: list[ModelEvent]) -> None:
        if not block.id or not block.name:
            raise upstream_errors.malformed()
        call = ToolCall(id=block.id, name=block.name, arguments=shapes.arguments(spelled, block.name))
        out.append(ToolCallDone(self._calls, call))
        self._calls += 1

    def _settle(self, out: list[ModelEvent], *, truncated: bool) -> None:
        """Decide about a call that ended without complete arguments. Only the last block can be cut by the limit."""
        pending, self._pending = self._pending, None
        if pending is not None and not truncated:
            # Some servers put the input into the start of the block and send no fragments.
            spelled = pending.continued("input") or bytes(pending.block.input).decode()
            self._emit(pending, spelled, out)

    def _change_message(self, event: _Event, out: list[ModelEvent]) -> None:
        if event.delta is not None and event.delta.stop_reason is not None:
            self._stop = event.delta.stop_reason
        self._report(event.usage, out)

    def _end(self, event: _Event | None, out: list[ModelEvent]) -> None:
        self._end_block(event, out)
        reason = _reason(self._stop)
        self._settle(out, truncated=reason in _TRUNCATING)
        out.append(Stopped(reason))
        self.stopped = True

    def _fail(self, event: _Event, out: list[ModelEvent]) -> None:
        raise upstream_errors.from_stream(event.error)

    def _report(self, later: _Usage | None, out: list[ModelEvent]) -> None:
        """Figures are cumulative, each replacing the one before. The provider leaves the cache out of its input."""
        if later is None:
            return
        known = self._usage
        for field in _Usage.__struct_fields__:
            value = getattr(later, field)
            if value is not None:
                setattr(known, field, value)
        details = known.output_tokens_details
        parts = (known.input_tokens, known.cache_read_input_tokens, known.cache_creation_input_tokens)
        out.append(
            UsageReported(
                Usage(
                    input_tokens=None if known.input_tokens is None else sum(part or 0 for part in parts),
                    output_tokens=known.output_tokens,
                    cache_read_tokens=known.cache_read_input_tokens,
                    cache_write_tokens=known.cache_creation_input_tokens,
                    reasoning_tokens=None if details is None else details.thinking_tokens,
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
    """A block between its start and its stop."""

    __slots__ = ("_pieces", "block", "citations", "raw")

    def __init__(self, block: _Block, raw: Raw) -> None:
        self.block = block
        self.raw = raw
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


def _reason(stop: str | None) -> StopReason:
    return _STOPS.get(stop or "", StopReason.END)


def _started_with(value: Raw | None) -> str:
    """What a text field held when its block began; usually nothing."""
    return "" if value is None else msgspec.json.decode(value, type=str | None) or ""
