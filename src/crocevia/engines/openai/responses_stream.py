"""The Responses API's answers: stream events or one body to model events.

Every item also leaves as an `OpaqueBlock`, as the provider spelled it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import Raw

from crocevia.core.events import (
    ModelEvent,
    OpaqueBlock,
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

DIALECT = "openai-responses"


class _Reason(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    status: str | None = None
    output: list[Raw] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    incomplete_details: _Reason | None = None


class _Event(msgspec.Struct):
    type: str
    delta: Any = None
    output_index: int = 0
    item: Raw = Raw()
    response: _Response | None = None
    error: Any = None
    code: Any = None
    annotation: Any = None


class _Content(msgspec.Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None
    annotations: Any = None


class _Item(msgspec.Struct):
    """The fields of an item that mean something here; the rest travels in its raw form."""

    type: str = ""
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    status: str | None = None
    content: list[_Content] | None = None
    summary: list[_Content] | None = None


_event = msgspec.json.Decoder(_Event)
_item = msgspec.json.Decoder(_Item)
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class ResponsesDecoder:
    """One answer. See `driver.Decoder`."""

    def __init__(self) -> None:
        self.started = False
        self.stopped = False
        self._calls: dict[int, int] = {}
        self._items = 0
        self._said = False
        self._thought = False
        self._refused = False
        self._declined = False
        self._cited = False
        self._bad: str | None = None

    def feed(self, event: SseEvent, out: list[ModelEvent]) -> None:
        if event.data == b"[DONE]":
            return
        try:
            parsed = _event.decode(event.data)
        except _DECODE_ERRORS:
            raise upstream_errors.malformed() from None
        handle = self._HANDLERS.get(parsed.type)
        if handle is not None:
            handle(self, parsed, out)

    def finish(self, out: list[ModelEvent]) -> None:
        """Only a terminal event completes an answer; it was not there."""

    def whole(self, body: bytes, out: list[ModelEvent]) -> None:
        try:
            response = msgspec.json.decode(body, type=_Response)
        except _DECODE_ERRORS:
            raise upstream_errors.malformed() from None
        self._conclude(response, out)

    def _text(self, event: _Event, out: list[ModelEvent]) -> None:
        if isinstance(event.delta, str) and event.delta:
            self._said = True
            out.append(TextDelta(event.delta))

    def _reasoning(self, event: _Event, out: list[ModelEvent]) -> None:
        if isinstance(event.delta, str) and event.delta:
            self._thought = True
            out.append(ReasoningDelta(event.delta, raw=event.type in _RAW))

    def _refusal(self, event: _Event, out: list[ModelEvent]) -> None:
        # Its sentence is no answer: the caller is told that there was a refusal.
        self._refused = True
        if isinstance(event.delta, str) and event.delta:
            self._declined = True
            out.append(RefusalDelta(event.delta))

    def _cite(self, event: _Event, out: list[ModelEvent]) -> None:
        self._cited = True
        out += citations.read([event.annotation])

    def _begin_item(self, event: _Event, out: list[ModelEvent]) -> None:
        self.started = True
        item = self._decode(event.item)
        if item.type == "function_call":
            self._start_call(event.output_index, item, out)

    def _arguments(self, event: _Event, out: list[ModelEvent]) -> None:
        number = self._calls.get(event.output_index)
        if number is not None and isinstance(event.delta, str) and event.delta:
            out.append(ToolCallDelta(number, event.delta))

    def _end_item(self, event: _Event, out: list[ModelEvent]) -> None:
        self.started = True
        self._whole_item(event.output_index, event.item, out, streamed=True)

    def _whole_item(self, index: int, raw: Raw, out: list[ModelEvent], *, streamed: bool) -> None:
        """A finished item. `streamed`: its texts were said as they came."""
        item = self._decode(raw)
        self._items += 1
        if item.type == "function_call" and not self._call(index, item, out):
            return
        self._refused = self._refused or any(content.type == "refusal" for content in item.content or ())
        if not streamed:
            self._say(item, out)
        out.append(OpaqueBlock(DIALECT, raw.copy(), item.type == "reasoning"))

    def _say(self, item: _Item, out: list[ModelEvent]) -> None:
        texts = [content.text for content in item.content or () if content.text]
        if item.type == "message" and not self._said:
            out += [TextDelta(text) for text in texts]
        if item.type == "message" and not self._declined:
            out += [RefusalDelta(content.refusal) for content in item.content or () if content.refusal]
        if item.type == "message" and not self._cited:
            out += [cited for content in item.content or () for cited in citations.read(content.annotations)]
        if item.type == "reasoning" and not self._thought:
            out += [ReasoningDelta(part.text) for part in item.summary or () if part.text]
            out += [ReasoningDelta(text, raw=True) for text in texts]

    def _call(self, index: int, item: _Item, out: list[ModelEvent]) -> bool:
        """Emit a complete call. False when the output limit may have cut it, which the end of the answer decides."""
        number = self._calls.get(index)
        if number is None:
            number = self._start_call(index, item, out)
            if item.arguments:
                out.append(ToolCallDelta(number, item.arguments))
        whole = item.status != "incomplete" and not self._bad
        if whole and (shapes.is_object(item.arguments) or (not item.arguments.strip() and item.status == "completed")):
            arguments = shapes.arguments(item.arguments, item.name)
            out.append(ToolCallDone(number, ToolCall(id=item.call_id, name=item.name, arguments=arguments)))
            return True
        self._bad = self._bad or item.name
        return False

    def _start_call(self, index: int, item: _Item, out: list[ModelEvent]) -> int:
        if not item.call_id or not item.name:
            raise upstream_errors.malformed()
        number = self._calls[index] = len(self._calls)
        out.append(ToolCallStarted(number, item.call_id, item.name))
        return number

    def _finished(self, event: _Event, out: list[ModelEvent]) -> None:
        if event.response is None:
            raise upstream_errors.malformed()
        self._conclude(event.response, out, _FINAL.get(event.type))

    def _conclude(self, response: _Response, out: list[ModelEvent], status: str | None = None) -> None:
        if response.error is not None or "failed" in (status, response.status):
            raise upstream_errors.from_stream(response.error)
        if response.output is None and self._items == 0:
            raise upstream_errors.malformed()
        # Servers that leave out the events of their items still list them at the end.
        for index, raw in enumerate((response.output or [])[self._items :], self._items):
            self._whole_item(index, raw, out, streamed=False)
        if response.usage is not None:
            out.append(UsageReported(openai_chat_usage.read(response.usage)))
        reason = self._reason(response, status or response.status)
        if self._bad and reason in (StopReason.END, StopReason.TOOL_USE):
            upstream_errors.bad_arguments(self._bad)
        out.append(Stopped(reason))
        self.stopped = True

    def _reason(self, response: _Response, status: str | None) -> StopReason:
        if self._refused:
            return StopReason.REFUSAL
        if status == "incomplete":
            why = response.incomplete_details.reason if response.incomplete_details is not None else None
            return StopReason.REFUSAL if why == "content_filter" else StopReason.MAX_TOKENS
        return StopReason.TOOL_USE if self._calls else StopReason.END

    def _fail(self, event: _Event, out: list[ModelEvent]) -> None:
        raise upstream_errors.from_stream(event.error if event.error is not None else {"code": event.code})

    def _decode(self, raw: Raw) -> _Item:
        try:
            return _item.decode(raw)
        except _DECODE_ERRORS:
            raise upstream_errors.malformed() from None

    _HANDLERS: ClassVar[dict[str, Any]] = {
        "response.output_text.delta": _text,
        "response.reasoning_summary_text.delta": _reasoning,
        "response.reasoning_text.delta": _reasoning,
        "response.reasoning.delta": _reasoning,
        "response.output_text.annotation.added": _cite,
        "response.refusal.delta": _refusal,
        "response.refusal.done": _refusal,
        "response.function_call_arguments.delta": _arguments,
        "response.output_item.added": _begin_item,
        "response.output_item.done": _end_item,
        "response.completed": _finished,
        "response.incomplete": _finished,
        "response.failed": _finished,
        "error": _fail,
    }


_RAW = frozenset({"response.reasoning_text.delta", "response.reasoning.delta"})
_FINAL = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
