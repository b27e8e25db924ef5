"""From a model's events to the events of `/v1/responses`. Pure: bytes out, no I/O.

Every item is opened once and closed once, whatever the provider's own order; ids are ours and stay the same. One
frame is `event`, `data` and a blank line, with LF only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw

from crocevia.core import json
from crocevia.core.events import (
    OpaqueBlock,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
)
from crocevia.runtime.turns.runs import RunEvent, StepEnded

from . import wire
from .items import Sealed, seal

DONE: Final = b"data: [DONE]\n\n"
TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
Frame = tuple[str, bytes]
Ending = Literal["completed", "incomplete"]


class _Call(msgspec.Struct):
    """A tool call that is being spelled out."""

    id: str
    index: int
    call_id: str
    name: str
    sent: list[str] = []


class Encoder:
    """The state of one answer. `items`: what is finished, in the order of its opening. quiet: no frames are wanted."""

    def __init__(self, response_id: str = "", *, sealing: bool = False, quiet: bool = False) -> None:
        self.sequence = 0
        self._own = response_id.removeprefix("resp_")
        self._finished: dict[int, Raw] = {}
        self._count = 0
        self._sealing = sealing
        self._quiet = quiet
        self._opaque: list[OpaqueBlock] = []
        self._text: list[str] = []
        self._text_id = ""
        self._text_index = -1
        self._text_head = b""
        self._thought: list[str] = []
        self._thought_id = ""
        self._thought_index = -1
        self._calls: dict[int, _Call] = {}
        self._out: list[Frame] = []
        self.started = False

    @property
    def items(self) -> list[Raw]:
        return [self._finished[index] for index in sorted(self._finished)]

    def begin(self, resource: wire.Resource) -> list[Frame]:
        """`created` and `in_progress`."""
        self.started = True
        self._whole("response.created", resource)
        self._whole("response.in_progress", resource)
        return self._taken()

    def queued(self, resource: wire.Resource) -> list[Frame]:
        """`created` and `queued`, of an answer that waits for its turn; `in_progress` follows with `begin_queued`."""
        self.started = True
        self._whole("response.created", resource)
        self._whole("response.queued", resource)
        return self._taken()

    def progress(self, resource: wire.Resource) -> list[Frame]:
        self._whole("response.in_progress", resource)
        return self._taken()

    def feed(self, batch: Sequence[RunEvent]) -> list[Frame]:
        """The frames of one batch; neighbouring texts become one delta."""
        texts: list[str] = []
        for event in batch:
            if type(event) is TextDelta:
                texts.append(event.text)
                continue
            if texts and type(event) in _ADD:
                self._say("".join(texts))
                texts.clear()
            adding = _ADD.get(type(event))
            if adding is not None:
                adding(self, event)
        if texts:
            self._say("".join(texts))
        return self._taken()

    def close(self, ending: Ending) -> list[Frame]:
        """Close whatever is open; with `incomplete` the last item is incomplete as well."""
        self._close_thought()
        for call in self._calls.values():
            self._done_call(call, "".join(call.sent), "incomplete")
        self._calls.clear()
        self._close_text(ending)
        if not self._finished and ending == "completed":
            self._open_text()
            self._close_text(ending)
        self._seal()
        return self._taken()

    def end(self, resource: wire.Resource) -> list[Frame]:
        """The terminal event."""
        self._whole(f"response.{resource.status}", resource)
        return self._taken()

    def fail(self, failure: dict[str, Any], resource: wire.Resource) -> list[Frame]:
        """What failed, once for those who look for `error`, once for those who look at the answer."""
        error = {"type": failure["type"], "code": failure.get("code"), "message": failure["message"]}
        self._emit("error", {"error": {**error, "param": failure.get("param")}})
        self._whole("response.failed", resource)
        return self._taken()

    # text

    def _say(self, text: str) -> None:
        if self._text_index < 0:
            self._close_thought()
            self._open_text()
        self._text.append(text)
        if self._quiet:
            return
        data = b"%b%d,%b%b%b" % (_DELTA, self.sequence, self._text_head, json.encode(text), b',"logprobs":[]}')
        self.sequence += 1
        self._out.append(("response.output_text.delta", data))

    def _open_text(self) -> None:
        self._text_id, self._text_index = self._name("msg")
        head = b'"item_id":"%b","output_index":%d,"content_index":0,"delta":'
        self._text_head = head % (self._text_id.encode(), self._text_index)
        item = wire.MessageItem(id=self._text_id, status="in_progress", content=[])
        self._emit("response.output_item.added", {"output_index": self._text_index, "item": item})
        self._emit("response.content_part.added", self._part(wire.Said(text="")))

    def _close_text(self, ending: Ending = "completed") -> None:
        if self._text_index < 0:
            return
        text = "".join(self._text)
        place = {"item_id": self._text_id, "output_index": self._text_index, "content_index": 0}
        self._emit("response.output_text.done", {**place, "text": text, "logprobs": []})
        said = wire.Said(text=text)
        self._emit("response.content_part.done", self._part(said))
        self._finish(self._text_index, wire.MessageItem(id=self._text_id, status=ending, content=[said]))
        self._text, self._text_index = [], -1

    def _part(self, part: wire.Said) -> dict[str, Any]:
        return {"item_id": self._text_id, "output_index": self._text_index, "content_index": 0, "part": part}

    # reasoning

    def _think(self, event: ReasoningDelta) -> None:
        if self._thought_index < 0:
            self._close_text()
            self._thought_id, self._thought_index = self._name("rs")
            item = wire.ReasoningItem(id=self._thought_id, summary=[], status="in_progress")
            self._emit("response.output_item.added", {"output_index": self._thought_index, "item": item})
            self._emit("response.reasoning_summary_part.added", self._thought_part(""))
        self._thought.append(event.text)
        self._emit("response.reasoning_summary_text.delta", {**self._thought_place(), "delta": event.text})

    def _close_thought(self) -> None:
        if self._thought_index < 0:
            return
        text = "".join(self._thought)
        self._emit("response.reasoning_summary_text.done", {**self._thought_place(), "text": text})
        self._emit("response.reasoning_summary_part.done", self._thought_part(text))
        summary = [wire.SummaryText(text=text)]
        self._finish(self._thought_index, wire.ReasoningItem(id=self._thought_id, summary=summary, status="completed"))
        self._thought, self._thought_index = [], -1

    def _thought_place(self) -> dict[str, Any]:
        return {"item_id": self._thought_id, "output_index": self._thought_index, "summary_index": 0}

    def _thought_part(self, text: str) -> dict[str, Any]:
        return {**self._thought_place(), "part": wire.SummaryText(text=text)}

    def _keep(self, event: OpaqueBlock) -> None:
        self._opaque.append(event)

    def _seal(self) -> None:
        """An engine's own blocks go to the caller sealed, to come back with the conversation."""
        if not self._opaque or not self._sealing:
            return
        sealed = Sealed(dialect=self._opaque[0].dialect, blocks=[piece.block for piece in self._opaque])
        item_id, index = self._name("rs")
        opened = wire.ReasoningItem(id=item_id, summary=[], status="in_progress")
        self._emit("response.output_item.added", {"output_index": index, "item": opened})
        item = wire.ReasoningItem(id=item_id, summary=[], encrypted_content=seal(sealed), status="completed")
        self._finish(index, item)

    def _step(self, event: StepEnded) -> None:
        """Another answer begins: what was said stands, and the blocks of its answer belong to the agent alone."""
        self._close_thought()
        self._close_text()
        self._opaque.clear()

    # calls

    def _start_call(self, event: ToolCallStarted) -> None:
        self._close_thought()
        self._close_text()
        call = _Call(*self._name("fc"), event.id, event.name)
        self._calls[event.index] = call
        item = self._call_item(call, "", "in_progress")
        self._emit("response.output_item.added", {"output_index": call.index, "item": item})

    def _spell_call(self, event: ToolCallDelta) -> None:
        call = self._calls.get(event.index)
        if call is not None and event.fragment:
            call.sent.append(event.fragment)
            self._emit("response.function_call_arguments.delta", {**_at(call), "delta": event.fragment})

    def _end_call(self, event: ToolCallDone) -> None:
        if event.index not in self._calls:
            self._start_call(ToolCallStarted(event.index, event.call.id, event.call.name))
        self._done_call(self._calls.pop(event.index), bytes(event.call.arguments).decode(), "completed")

    def _done_call(self, call: _Call, arguments: str, status: str) -> None:
        if not call.sent and arguments:
            self._emit("response.function_call_arguments.delta", {**_at(call), "delta": arguments})
        done = {**_at(call), "name": call.name, "arguments": arguments}
        self._emit("response.function_call_arguments.done", done)
        self._finish(call.index, self._call_item(call, arguments, status))

    def _call_item(self, call: _Call, arguments: str, status: str) -> wire.CallItem:
        return wire.CallItem(id=call.id, call_id=call.call_id, name=call.name, arguments=arguments, status=status)

    # frames

    def tell(self, raw: Raw) -> list[Frame]:
        """The frames of an item that is finished."""
        item = msgspec.json.decode(raw, type=wire.Item)
        kind, index = item.type or "", self._next()
        self._emit("response.output_item.added", {"output_index": index, "item": _emptied(item)})
        place = {"item_id": item.id, "output_index": index}
        for part, content in enumerate(item.content if isinstance(item.content, list) else []):
            here = {**place, "content_index": part}
            text = content.text or ""
            self._emit("response.content_part.added", {**here, "part": wire.Said(text="")})
            self._emit("response.output_text.delta", {**here, "delta": text, "logprobs": []})
            self._emit("response.output_text.done", {**here, "text": text, "logprobs": []})
            self._emit("response.content_part.done", {**here, "part": wire.Said(text=text)})
        for part, thought in enumerate(item.summary or []):
            here, text = {**place, "summary_index": part}, str(thought.get("text", ""))
            self._emit("response.reasoning_summary_part.added", {**here, "part": wire.SummaryText(text="")})
            self._emit("response.reasoning_summary_text.delta", {**here, "delta": text})
            self._emit("response.reasoning_summary_text.done", {**here, "text": text})
            self._emit("response.reasoning_summary_part.done", {**here, "part": wire.SummaryText(text=text)})
        if kind == "function_call":
            done = {"arguments": item.arguments or ""}
            self._emit("response.function_call_arguments.delta", {**place, "delta": done["arguments"]})
            self._emit("response.function_call_arguments.done", {**place, "name": item.name, **done})
        self._emit("response.output_item.done", {"output_index": index, "item": raw})
        return self._taken()

    def _name(self, kind: str) -> tuple[str, int]:
        """The next item's id and index. The id tells whose it is, so that a reference to it can be followed."""
        index = self._next()
        return f"{kind}_{self._own}_{index}", index

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    def _finish(self, index: int, item: wire.MessageItem | wire.CallItem | wire.ReasoningItem) -> None:
        self._finished[index] = Raw(json.encode(item))
        self._emit("response.output_item.done", {"output_index": index, "item": self._finished[index]})

    def _whole(self, kind: str, resource: wire.Resource) -> None:
        self._emit(kind, {"response": resource})

    def _emit(self, kind: str, fields: dict[str, Any]) -> None:
        if self._quiet:
            return
        data = json.encode({"type": kind, "sequence_number": self.sequence, **fields})
        self.sequence += 1
        self._out.append((kind, data))

    def _taken(self) -> list[Frame]:
        out, self._out = self._out, []
        return out


_DELTA: Final = b'{"type":"response.output_text.delta","sequence_number":'
_ADD: Final[dict[type, Any]] = {
    ReasoningDelta: Encoder._think,
    ToolCallStarted: Encoder._start_call,
    ToolCallDelta: Encoder._spell_call,
    ToolCallDone: Encoder._end_call,
    OpaqueBlock: Encoder._keep,
    StepEnded: Encoder._step,
}


def _emptied(item: wire.Item) -> wire.MessageItem | wire.CallItem | wire.ReasoningItem:
    """The item before anything was in it."""
    name = item.id or ""
    if item.type == "function_call":
        call_id, called = item.call_id or "", item.name or ""
        return wire.CallItem(id=name, call_id=call_id, name=called, arguments="", status="in_progress")
    if item.type == "reasoning":
        return wire.ReasoningItem(id=name, summary=[], status="in_progress")
    return wire.MessageItem(id=name, status="in_progress", content=[])


def _at(call: _Call) -> dict[str, Any]:
    return {"item_id": call.id, "output_index": call.index}


def replayed(resource: wire.Resource) -> list[Frame]:
    """The stream of an answer that is over, told again from its items: each delta is whole."""
    telling = Encoder()
    opening = msgspec.structs.replace(
        resource, status="in_progress", output=[], usage=None, completed_at=None, error=None, incomplete_details=None
    )
    frames = telling.begin(opening)
    if resource.background:
        telling = Encoder()
        frames = telling.queued(msgspec.structs.replace(opening, status="queued")) + telling.progress(opening)
    for raw in resource.output:
        frames += telling.tell(raw)
    if resource.status == "failed" and resource.error is not None:
        fault = resource.error
        return frames + telling.fail({"type": "api_error", "code": fault.code, "message": fault.message}, resource)
    return frames + telling.end(resource)


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


__all__ = ["DONE", "TERMINAL", "Encoder", "Frame", "sse"]
