"""The Responses API's answers: stream events or one body to model events.

Every item also leaves as an `ProviderBlock`, as the provider spelled it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw

from crocevia.core.events import (
    TRUNCATING,
    ModelEvent,
    ProviderBlock,
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
from crocevia.engines.upstream import endings, shapes
from crocevia.engines.upstream import errors as upstream_errors
from crocevia.engines.upstream.sse import SseEvent

DIALECT = "openai-responses"


_REASONS: Final = {
    "content_filter": StopReason.REFUSAL,
    **dict.fromkeys(("max_output_tokens", "max_tokens", "length"), StopReason.MAX_TOKENS),
}
_STATUSES: Final = {"completed": StopReason.END}


class _Reason(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    status: str | None = None
    output: list[Raw] | None = None
    usage: Any = None
    error: Any = None
    incomplete_details: _Reason | None = None


class _Event(msgspec.Struct):
    type: str = ""
    delta: Any = None
    output_index: int | None = None
    item_id: str | None = None
    item: Raw = Raw()
    response: _Response | None = None
    error: Any = None
    code: Any = None
    annotation: Any = None

    @property
    def place(self) -> int | str | None:
        """Where it belongs; None where a server does not say."""
        return self.item_id if self.output_index is None else self.output_index


class _Content(msgspec.Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None
    annotations: Any = None


class _Item(msgspec.Struct):
    """The fields of an item that mean something here; the rest travels in its raw form."""

    type: str = ""
    id: str | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    status: str | None = None
    content: list[_Content] | None = None
    summary: list[_Content] | None = None


_event = msgspec.json.Decoder(_Event)
_item = msgspec.json.Decoder(_Item)


class ResponsesDecoder:
    """One answer. See `reading.Decoder`."""

    def __init__(self) -> None:
        self.started = False
        self.stopped = False
        self._calls: dict[int | str | None, int] = {}
        self._done: set[int | str | None] = set()  # the items that came whole, by their place
        self._unplaced = 0  # those of them that named none: the first ones, then
        self._said: set[int | str | None] = set()  # the items whose texts came in pieces; with None, all
        self._thought: set[int | str | None] = set()
        self._refused = False
        self._declined = False
        self._cited = False
        self._bad: str | None = None

    def feed(self, event: SseEvent, out: list[ModelEvent]) -> None:
        if event.data == b"[DONE]":
            return
        try:
            parsed = _event.decode(event.data)
            handle = self._HANDLERS.get(parsed.type)
            if handle is not None:
                handle(self, parsed, out)
        except upstream_errors.UNREADABLE:
            raise upstream_errors.malformed() from None

    def finish(self, out: list[ModelEvent]) -> None:
        """Only a terminal event completes an answer; it was not there."""

    def whole(self, body: bytes, out: list[ModelEvent]) -> None:
        try:
            self._conclude(msgspec.json.decode(body, type=_Response), out)
        except upstream_errors.UNREADABLE:
            raise upstream_errors.malformed() from None

    def _text(self, event: _Event, out: list[ModelEvent]) -> None:
        if isinstance(event.delta, str) and event.delta:
            self._said.add(event.output_index)
            out.append(TextDelta(event.delta))

    def _reasoning(self, event: _Event, out: list[ModelEvent]) -> None:
        if isinstance(event.delta, str) and event.delta:
            self._thought.add(event.output_index)
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
        item = _item.decode(event.item)
        if item.type == "function_call" and item.call_id and item.name:
            self._start_call(_place(event, item), item, out)

    def _arguments(self, event: _Event, out: list[ModelEvent]) -> None:
        number = self._calls.get(event.place)
        if number is not None and isinstance(event.delta, str) and event.delta:
            out.append(ToolCallDelta(number, event.delta))

    def _end_item(self, event: _Event, out: list[ModelEvent]) -> None:
        self.started = True
        item = _item.decode(event.item)
        place = _place(event, item)
        if place in self._done and place is not None:
            return
        self._done.add(place)
        self._unplaced += event.output_index is None
        self._whole_item(place, item, event.item, out)

    def _whole_item(self, place: int | str | None, item: _Item, raw: Raw, out: list[ModelEvent]) -> None:
        """A finished item: what its pieces did not say of it is said now."""
        if item.type == "function_call" and not self._call(place, item, out):
            return
        self._refused = self._refused or any(content.type == "refusal" for content in item.content or ())
        self._say(place, item, out)
        out.append(ProviderBlock(DIALECT, raw.copy(), item.type == "reasoning"))

    def _say(self, place: int | str | None, item: _Item, out: list[ModelEvent]) -> None:
        texts = [content.text for content in item.content or () if content.text]
        if item.type == "message":
            if not _known(place, self._said):
                out += [TextDelta(text) for text in texts]
            if not self._declined:
                out += [RefusalDelta(content.refusal) for content in item.content or () if content.refusal]
            if not self._cited:
                out += [cited for content in item.content or () for cited in citations.read(content.annotations)]
        if item.type == "reasoning" and not _known(place, self._thought):
            out += [ReasoningDelta(part.text) for part in item.summary or () if part.text]
            out += [ReasoningDelta(text, raw=True) for text in texts]

    def _call(self, place: int | str | None, item: _Item, out: list[ModelEvent]) -> bool:
        """Emit a complete call. False when the output limit may have cut it, which the end of the answer decides."""
        number = self._calls.get(place)
        if number is None:
            number = self._start_call(place, item, out)
            if item.arguments:
                out.append(ToolCallDelta(number, item.arguments))
        whole = item.status != "incomplete" and not self._bad
        if whole and (shapes.is_object(item.arguments) or (not item.arguments.strip() and item.status == "completed")):
            arguments = shapes.arguments(item.arguments, item.name)
            out.append(ToolCallDone(number, ToolCall(id=item.call_id, name=item.name, arguments=arguments)))
            return True
        self._bad = self._bad or item.name
        return False

    def _start_call(self, place: int | str | None, item: _Item, out: list[ModelEvent]) -> int:
        if not item.call_id or not item.name:
            raise upstream_errors.malformed()
        number = self._calls[place] = len(self._calls)
        out.append(ToolCallStarted(number, item.call_id, item.name))
        return number

    def _finished(self, event: _Event, out: list[ModelEvent]) -> None:
        if event.response is None:
            raise upstream_errors.malformed()
        self._conclude(event.response, out, _FINAL.get(event.type))

    def _conclude(self, response: _Response, out: list[ModelEvent], status: str | None = None) -> None:
        status = status or response.status
        if response.error is not None or "failed" in (status, response.status):
            raise upstream_errors.from_stream(response.error)
        if response.output is None and not self._done:
            raise upstream_errors.malformed()
        # Servers that leave out the events of their items still list them at the end.
        for place, raw in enumerate(response.output or ()):
            if place >= self._unplaced and place not in self._done:
                self._whole_item(place, _item.decode(raw), raw, out)
        if isinstance(response.usage, dict):
            out.append(UsageReported(openai_chat_usage.read(response.usage)))
        stopped = self._stopped(response, status)
        if self._bad and stopped.reason not in TRUNCATING:
            upstream_errors.bad_arguments(self._bad)
        out.append(stopped)
        self.stopped = True

    def _stopped(self, response: _Response, status: str | None) -> Stopped:
        if status == "incomplete":
            details = response.incomplete_details
            why = (details.reason if details is not None else None) or "unknown"
            return endings.stopped(why, _REASONS, calls=False, refused=self._refused)
        return endings.stopped(status, _STATUSES, calls=bool(self._calls), refused=self._refused)

    def _fail(self, event: _Event, out: list[ModelEvent]) -> None:
        raise upstream_errors.from_stream(event.error if event.error is not None else {"code": event.code})

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


def _place(event: _Event, item: _Item) -> int | str | None:
    return (event.item_id or item.id) if event.output_index is None else event.output_index


def _known(place: int | str | None, places: set[int | str | None]) -> bool:
    """Whether an item is among those; pieces that named no place may be anyone's."""
    return bool(places) and (place in places or None in places or not isinstance(place, int))


_RAW = frozenset({"response.reasoning_text.delta", "response.reasoning.delta"})
_FINAL = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
