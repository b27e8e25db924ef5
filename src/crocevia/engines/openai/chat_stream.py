"""Chat completions' answers: chunks or one body to model events.

Servers differ in what they leave out. Accepted: empty `choices` anywhere, usage before, in or after the last choice, no
`[DONE]`, calls without an id or an index, several calls under one index, reasoning under three names, text as parts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from crocevia.core.events import (
    ModelEvent,
    ReasoningDelta,
    RefusalDelta,
    Stopped,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageReported,
)
from crocevia.core.messages import ToolCall
from crocevia.engines.openai import citations
from crocevia.engines.openai import usage as openai_chat_usage
from crocevia.engines.upstream import errors as upstream_errors
from crocevia.engines.upstream import shapes
from crocevia.engines.upstream.sse import SseEvent

_STOPS = {
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "length": StopReason.MAX_TOKENS,
    "content_filter": StopReason.REFUSAL,
}
_TRUNCATING = (StopReason.MAX_TOKENS, StopReason.REFUSAL)


class _Function(msgspec.Struct):
    name: str | None = None
    # A few servers send the arguments as an object instead of its spelling.
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    refusal: str | None = None
    annotations: Any = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    timings: dict[str, Any] | None = None
    error: Any = None


_chunk = msgspec.json.Decoder(_Chunk)


class _Pending:
    """A tool call whose fragments are still coming."""

    __slots__ = ("fragments", "id", "name", "number")

    def __init__(self, number: int, call_id: str, name: str) -> None:
        self.number = number
        self.id = call_id
        self.name = name
        self.fragments: list[str] = []


class ChatDecoder:
    """One answer. See `driver.Decoder`."""

    def __init__(self) -> None:
        self.started = False
        self.stopped = False
        self._finish: str | None = None
        self._refused = False
        self._calls: list[_Pending] = []
        self._by_index: dict[int, _Pending] = {}

    def feed(self, event: SseEvent, out: list[ModelEvent]) -> None:
        data = event.data
        if data == b"[DONE]":
            self._end(out)
            return
        try:
            chunk = _chunk.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise upstream_errors.malformed() from None
        if chunk.error is not None or event.name == b"error":
            raise upstream_errors.from_stream(chunk.error)
        self._take(chunk, out)

    def finish(self, out: list[ModelEvent]) -> None:
        """Not every server says `[DONE]`; a finish reason is end enough."""
        if self._finish is not None and not self.stopped:
            self._end(out)

    def whole(self, body: bytes, out: list[ModelEvent]) -> None:
        try:
            chunk = _chunk.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise upstream_errors.malformed() from None
        if chunk.error is not None:
            raise upstream_errors.from_stream(chunk.error)
        if not chunk.choices:
            raise upstream_errors.malformed()
        self._take(chunk, out)
        self._end(out)

    def _take(self, chunk: _Chunk, out: list[ModelEvent]) -> None:
        for choice in chunk.choices or ():
            if choice.index:
                continue
            delta = choice.delta or choice.message
            if delta is not None:
                before = len(out)
                self._say(delta, out)
                self.started = self.started or len(out) > before
            if choice.finish_reason:
                self._finish = choice.finish_reason
        usage = chunk.usage or chunk.timings
        if usage is not None:
            out.append(UsageReported(openai_chat_usage.read(usage)))

    def _say(self, delta: _Delta, out: list[ModelEvent]) -> None:
        reasoning = delta.reasoning_content or delta.reasoning
        if reasoning and isinstance(reasoning, str):
            out.append(ReasoningDelta(reasoning))
        content = delta.content
        if content:
            if isinstance(content, str):
                out.append(TextDelta(content))
            else:
                out += _parts(content)
        if delta.refusal:
            self._refused = True
            out.append(RefusalDelta(delta.refusal))
        if delta.annotations:
            out += citations.read(delta.annotations)
        for call in delta.tool_calls or ():
            self._continue_call(call, out)

    def _continue_call(self, call: _Call, out: list[ModelEvent]) -> None:
        function = call.function or _Function()
        pending = self._pending_for(call, function)
        if pending is None:
            pending = _Pending(len(self._calls), call.id or shapes.new_call_id(), function.name or "")
            self._calls.append(pending)
            self._by_index[pending.number if call.index is None else call.index] = pending
            if not pending.name:
                raise upstream_errors.malformed()
            out.append(ToolCallStarted(pending.number, pending.id, pending.name))
        fragment = function.arguments
        if isinstance(fragment, dict):
            fragment = msgspec.json.encode(fragment).decode()
        if fragment:
            pending.fragments.append(fragment)
            out.append(ToolCallDelta(pending.number, fragment))

    def _pending_for(self, call: _Call, function: _Function) -> _Pending | None:
        """The call that a piece continues; None when it begins one."""
        if call.index is None:
            pending = self._calls[-1] if self._calls and not function.name else None
        else:
            pending = self._by_index.get(call.index)
        if pending is not None and call.id and call.id != pending.id and function.name:
            return None
        return pending

    def _end(self, out: list[ModelEvent]) -> None:
        if self._finish == "error":
            raise upstream_errors.from_stream(None)
        # Some servers say «stop» after a tool call.
        stop = StopReason.TOOL_USE if self._calls else StopReason.END
        reason = StopReason.REFUSAL if self._refused else _STOPS.get(self._finish or "", stop)
        for pending in self._calls:
            text = "".join(pending.fragments)
            cut = reason in _TRUNCATING and pending is self._calls[-1] and not shapes.is_object(text)
            if not cut:
                call = ToolCall(id=pending.id, name=pending.name, arguments=shapes.arguments(text, pending.name))
                out.append(ToolCallDone(pending.number, call))
        out.append(Stopped(reason))
        self.stopped = True


def _parts(content: list[Any]) -> list[ModelEvent]:
    """Text given as parts (`text`, and `thinking` with texts of its own)."""
    events: list[ModelEvent] = []
    for part in content:
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str) and part["text"]:
            events.append(TextDelta(part["text"]))
        elif isinstance(part.get("thinking"), list):
            texts = "".join(str(inner.get("text", "")) for inner in part["thinking"] if isinstance(inner, dict))
            if texts:
                events.append(ReasoningDelta(texts))
    return events
