"""Chat completions' answers: chunks or one body to model events.

Servers differ in what they leave out. Accepted: empty `choices` anywhere, usage before, in or after the last choice, no
`[DONE]`, calls without id or index, several calls under one index, their names in pieces or after the id, reasoning
under three names, text as parts, a whole message after its pieces.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from crocevia.core.events import (
    TRUNCATING,
    ModelEvent,
    ReasoningDelta,
    RefusalDelta,
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
from crocevia.engines.upstream import endings, shapes
from crocevia.engines.upstream import errors as upstream_errors
from crocevia.engines.upstream.sse import SseEvent

_STOPS: Final = {
    **dict.fromkeys(("stop", "end", "end_turn", "eos", "eos_token", "stop_sequence", "complete"), StopReason.END),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), StopReason.TOOL_USE),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), StopReason.MAX_TOKENS),
    **dict.fromkeys(
        ("content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "spii", "sensitive"),
        StopReason.REFUSAL,
    ),
}


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
    usage: Any = None
    timings: Any = None
    error: Any = None


_chunk = msgspec.json.Decoder(_Chunk)
_NO_FUNCTION: Final = _Function()


class _Pending:
    """A tool call whose fragments are still coming. started: it had a name, and was told of."""

    __slots__ = ("fragments", "id", "minted", "name", "number", "started")

    def __init__(self, number: int, call_id: str | None) -> None:
        self.number = number
        self.minted = not call_id
        self.id = call_id or shapes.new_call_id()
        self.name = ""
        self.fragments: list[str] = []
        self.started = False


class ChatDecoder:
    """One answer. See `reading.Decoder`."""

    def __init__(self) -> None:
        self.started = False
        self.stopped = False
        self._finish: str | None = None
        self._begun = self._in_pieces = False
        self._said = self._thought = self._refused = self._cited = False
        self._calls: list[_Pending] = []
        self._by_index: dict[int, _Pending] = {}

    def feed(self, event: SseEvent, out: list[ModelEvent]) -> None:
        data = event.data
        if data == b"[DONE]":
            self._end(out)
            return
        try:
            chunk = _chunk.decode(data)
        except upstream_errors.UNREADABLE:
            raise upstream_errors.malformed() from None
        if chunk.error or event.name == b"error":
            raise upstream_errors.from_stream(chunk.error)
        self._take(chunk, out)

    def finish(self, out: list[ModelEvent]) -> None:
        """Not every server says `[DONE]`; a finish reason is end enough."""
        if self._finish is not None and not self.stopped:
            self._end(out)

    def whole(self, body: bytes, out: list[ModelEvent]) -> None:
        try:
            chunk = _chunk.decode(body)
        except upstream_errors.UNREADABLE:
            raise upstream_errors.malformed() from None
        if chunk.error:
            raise upstream_errors.from_stream(chunk.error)
        self._take(chunk, out)
        self._end(out)

    def _take(self, chunk: _Chunk, out: list[ModelEvent]) -> None:
        for choice in chunk.choices or ():
            if choice.index:
                continue
            self._begun = True
            before = len(out)
            if choice.delta is not None:
                self._in_pieces = True
                self._say(choice.delta, out)
            if choice.message is not None:
                self._say(self._unsaid(choice.message), out, whole=True)
            self.started = self.started or len(out) > before
            if choice.finish_reason:
                self._finish = choice.finish_reason
        usage = chunk.usage or chunk.timings
        if usage is not None and isinstance(usage, dict):  # None with nearly every token
            out.append(UsageReported(openai_chat_usage.read(usage)))

    def _unsaid(self, message: _Delta) -> _Delta:
        """What a message says that its pieces did not; all of it where there were none, as with some servers."""
        if not self._in_pieces:
            return message
        return _Delta(
            content=None if self._said else message.content,
            reasoning_content=None if self._thought else message.reasoning_content,
            reasoning=None if self._thought else message.reasoning,
            refusal=None if self._refused else message.refusal,
            annotations=None if self._cited else message.annotations,
            tool_calls=None if self._calls else message.tool_calls,
        )

    def _say(self, delta: _Delta, out: list[ModelEvent], *, whole: bool = False) -> None:
        reasoning = delta.reasoning_content or delta.reasoning
        if reasoning and isinstance(reasoning, str):
            self._thought = True
            out.append(ReasoningDelta(reasoning))
        content = delta.content
        if content:
            self._said = True
            if isinstance(content, str):
                out.append(TextDelta(content))
            else:
                out += _parts(content)
        if delta.refusal:
            self._refused = True
            out.append(RefusalDelta(delta.refusal))
        if delta.annotations:
            self._cited = True
            out += citations.read(delta.annotations)
        for call in delta.tool_calls or ():
            self._continue_call(call, out, begins=whole)

    def _continue_call(self, call: _Call, out: list[ModelEvent], *, begins: bool) -> None:
        function = call.function or _NO_FUNCTION
        # In a whole message every entry is a call of its own, also where a server gives two the same id.
        pending = None if begins else self._pending_for(call, function)
        if pending is None:
            pending = self._begin_call(call, out)
        elif pending.minted and call.id and not pending.started:
            pending.id, pending.minted = call.id, False
        if function.name and not pending.started:
            pending.name = _grown(pending.name, function.name)
        fragment = function.arguments
        if isinstance(fragment, dict):
            fragment = msgspec.json.encode(fragment).decode()
        if not fragment:
            return
        pending.fragments.append(fragment)
        if pending.started:
            out.append(ToolCallDelta(pending.number, fragment))
        elif pending.name:
            _start(pending, out)

    def _begin_call(self, call: _Call, out: list[ModelEvent]) -> _Pending:
        for before in self._calls:
            if before.name and not before.started:  # no more of its name will come
                _start(before, out)
        pending = _Pending(len(self._calls), call.id)
        self._calls.append(pending)
        self._by_index[pending.number if call.index is None else call.index] = pending
        return pending

    def _pending_for(self, call: _Call, function: _Function) -> _Pending | None:
        """The call that a piece continues; None when it begins one."""
        if call.index is None:
            pending = self._calls[-1] if self._calls else None
            if pending is not None and pending.name and function.name and (pending.minted or call.id != pending.id):
                return None
        else:
            pending = self._by_index.get(call.index)
        if pending is not None and function.name and call.id and call.id != pending.id and not pending.minted:
            return None
        return pending

    def _end(self, out: list[ModelEvent]) -> None:
        stopped = endings.stopped(self._finish, _STOPS, calls=bool(self._calls), refused=self._refused)
        if not self._begun:
            raise upstream_errors.malformed()
        truncated = stopped.reason in TRUNCATING
        for pending in self._calls:
            text = "".join(pending.fragments)
            last = pending is self._calls[-1]
            if truncated and not shapes.is_object(text) and (last or text.strip()):
                continue
            if not pending.name:
                raise upstream_errors.malformed()
            if not pending.started:
                _start(pending, out)
            call = ToolCall(id=pending.id, name=pending.name, arguments=shapes.arguments(text, pending.name))
            out.append(ToolCallDone(pending.number, call))
        out.append(stopped)
        self.stopped = True


def _start(pending: _Pending, out: list[ModelEvent]) -> None:
    """Tell of a call whose name is known, with what its arguments were so far."""
    pending.started = True
    out.append(ToolCallStarted(pending.number, pending.id, pending.name))
    if pending.fragments:
        out.append(ToolCallDelta(pending.number, "".join(pending.fragments)))


def _grown(name: str, piece: str) -> str:
    """A name with what one more piece says of it: the rest of it, or all of it again."""
    return piece if piece.startswith(name) else name + piece


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
