"""From a model's events to the events of `/v1/responses`. Pure: bytes out, no I/O.

Every item is opened once and closed once, whatever the provider's own order; ids are ours and stay the same. One
frame is `event`, `data` and a blank line, with LF only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from crocevia.core import json
from crocevia.core.events import (
    Cited,
    ProviderBlock,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    pieces,
)
from crocevia.doors.responses import options, wire
from crocevia.doors.responses.frames import Frame
from crocevia.doors.responses.items import Sealed, digest
from crocevia.runtime.turns.run_service import RunEvent, StepEnded

_NONE_TOLD: Final[Mapping[str, options.Told]] = {}
_CallItem: TypeAlias = wire.CallItem | wire.CustomCallItem
Ending = Literal["completed", "incomplete"]


class _Thinking(NamedTuple):
    """How a kind of reasoning is told: names of events, the key of its place, what a part is."""

    text: str
    part: str
    place: str
    made: type[wire.SummaryText] | type[wire.ReasoningText]


_SUMMARY: Final = _Thinking("reasoning_summary_text", "reasoning_summary_part", "summary_index", wire.SummaryText)
_RAW: Final = _Thinking("reasoning", "content_part", "content_index", wire.ReasoningText)


class _Call(msgspec.Struct):
    """A tool call that is being spelled out. known: as what the caller knows its tool."""

    id: str
    index: int
    call_id: str
    known: options.Told
    sent: list[str] = []


class AnswerEncoder:
    """The state of one answer. `items`: what is finished, in the order of its opening. blocks: how its engine gave it.

    quiet: no frames are wanted. seal: how the blocks leave, for a caller who asked for them.
    """

    def __init__(
        self,
        response_id: str = "",
        *,
        seal: Callable[[bytes], str] | None = None,
        quiet: bool = False,
        told: Mapping[str, options.Told] = _NONE_TOLD,
    ) -> None:
        self._told = told
        self.sequence = 0
        self._own = response_id.removeprefix("resp_")
        self._finished: dict[int, Raw] = {}
        self._count = 0
        self._seal_with = seal
        self.blocks: Sealed | None = None
        self._words: list[str] = []  # of this step, with its calls
        self._called: list[tuple[str, str, bytes]] = []
        self._quiet = quiet
        self._provider_blocks: list[ProviderBlock] = []
        self._text: list[str] = []
        self._cited: list[wire.Extra] = []
        self._declined_at: dict[str, Any] = {}
        self._declined: list[str] = []
        self._text_id = ""
        self._text_index = -1
        self._text_head = b""
        self._thought: list[str] = []
        self._thought_id = ""
        self._thought_raw = False
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
        return self.taken()

    def queued(self, resource: wire.Resource) -> list[Frame]:
        """`created` and `queued`, of an answer that waits for its turn; `in_progress` follows when it begins."""
        self.started = True
        self._whole("response.created", resource)
        self._whole("response.queued", resource)
        return self.taken()

    def progress(self, resource: wire.Resource) -> list[Frame]:
        self._whole("response.in_progress", resource)
        return self.taken()

    def feed(self, batch: Sequence[RunEvent]) -> list[Frame]:
        """The frames of one batch; neighbouring texts become one delta."""
        texts: list[str] = []
        for event in batch:
            if type(event) is TextDelta:
                texts.append(event.text)
                continue
            if texts and type(event) in _ADD:
                self._say_all("".join(texts))
                texts.clear()
            adding = _ADD.get(type(event))
            if adding is not None:
                adding(self, event)
        if texts:
            self._say_all("".join(texts))
        return self.taken()

    def close(self, ending: Ending) -> list[Frame]:
        """Close whatever is open; with `incomplete` the last item is incomplete as well, and the very last one."""
        self._close_thought(ending)
        for call in self._calls.values():
            self._done_call(call, "".join(call.sent), "incomplete")
        self._calls.clear()
        self._close_text(ending)
        self._close_refusal()
        if not self._finished and ending == "completed":
            self._open_text()
            self._close_text(ending)
        if ending == "completed":
            self._seal()
        return self.taken()

    def end(self, resource: wire.Resource) -> list[Frame]:
        """The terminal event."""
        self._whole(f"response.{resource.status}", resource)
        return self.taken()

    def fail(self, failure: dict[str, Any], resource: wire.Resource) -> list[Frame]:
        """What failed, once for those who look for `error`, once for those who look at the answer."""
        error = {"type": failure["type"], "code": failure.get("code"), "message": failure["message"]}
        self.emit("error", {"error": {**error, "param": failure.get("param")}})
        self._whole("response.failed", resource)
        return self.taken()

    # text

    def _say_all(self, text: str) -> None:
        for piece in pieces(text):
            self._say(piece)

    def _say(self, text: str) -> None:
        if self._text_index < 0:
            self._close_thought()
            self._open_text()
        self._text.append(text)
        self._words.append(text)
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
        self.emit("response.output_item.added", {"output_index": self._text_index, "item": item})
        self.emit("response.content_part.added", self._part(wire.Said(text="")))

    def _close_text(self, ending: Ending = "completed") -> None:
        if self._text_index < 0:
            return
        text = "".join(self._text)
        place = {"item_id": self._text_id, "output_index": self._text_index, "content_index": 0}
        self.emit("response.output_text.done", {**place, "text": text, "logprobs": []})
        said = wire.Said(text=text, annotations=self._cited)
        self.emit("response.content_part.done", self._part(said))
        self._finish(self._text_index, wire.MessageItem(id=self._text_id, status=ending, content=[said]))
        self._text, self._cited, self._text_index = [], [], -1

    def _cite(self, event: Cited) -> None:
        """A citation of what was said so far in this message."""
        if self._text_index < 0:
            return
        note = {
            "type": "url_citation",
            "url": event.url,
            "title": event.title,
            "start_index": event.start,
            "end_index": event.end,
        }
        place = {"item_id": self._text_id, "output_index": self._text_index, "content_index": 0}
        number = {"annotation_index": len(self._cited), "annotation": note}
        self.emit("response.output_text.annotation.added", {**place, **number})
        self._cited.append(note)

    # refusal

    def _decline(self, event: RefusalDelta) -> None:
        if not self._declined:
            self._close_thought()
            self._close_text()
            self._text_id, index = self._name("msg")
            self._declined_at = {"item_id": self._text_id, "output_index": index, "content_index": 0}
            item = wire.MessageItem(id=self._text_id, status="in_progress", content=[])
            self.emit("response.output_item.added", {"output_index": index, "item": item})
            self.emit("response.content_part.added", {**self._declined_at, "part": wire.Declined(refusal="")})
        self._declined.append(event.text)
        self._words.append(event.text)
        self._deltas("response.refusal", self._declined_at, event.text)

    def _close_refusal(self) -> None:
        if not self._declined:
            return
        at, part = self._declined_at, wire.Declined(refusal="".join(self._declined))
        self.emit("response.refusal.done", {**at, "refusal": part.refusal})
        self.emit("response.content_part.done", {**at, "part": part})
        item = wire.MessageItem(id=str(at["item_id"]), status="completed", content=[part])
        self._finish(int(at["output_index"]), item)
        self._declined = []

    @property
    def declined(self) -> bool:
        """The model refused, and said why."""
        return bool(self._declined)

    def _part(self, part: wire.Said) -> dict[str, Any]:
        return {"item_id": self._text_id, "output_index": self._text_index, "content_index": 0, "part": part}

    # reasoning

    def _think(self, event: ReasoningDelta) -> None:
        if self._thought_index >= 0 and self._thought_raw != event.raw:
            self._close_thought()
        if self._thought_index < 0:
            self._close_text()
            self._thought_raw = event.raw
            self._thought_id, self._thought_index = self._name("rs")
            item = wire.ReasoningItem(id=self._thought_id, summary=[], status="in_progress")
            self.emit("response.output_item.added", {"output_index": self._thought_index, "item": item})
            self.emit(f"response.{self._thinking.part}.added", self._thought_part(""))
        self._thought.append(event.text)
        self._deltas(f"response.{self._thinking.text}", self._thought_place(), event.text)

    def _close_thought(self, ending: Ending = "completed") -> None:
        if self._thought_index < 0:
            return
        text = "".join(self._thought)
        self.emit(f"response.{self._thinking.text}.done", {**self._thought_place(), "text": text})
        self.emit(f"response.{self._thinking.part}.done", self._thought_part(text))
        item = wire.ReasoningItem(
            id=self._thought_id,
            summary=[] if self._thought_raw else [wire.SummaryText(text=text)],
            content=[wire.ReasoningText(text=text)] if self._thought_raw else UNSET,
            status=ending,
        )
        self._finish(self._thought_index, item)
        self._thought, self._thought_index = [], -1

    @property
    def _thinking(self) -> _Thinking:
        return _RAW if self._thought_raw else _SUMMARY

    def _thought_place(self) -> dict[str, Any]:
        return {"item_id": self._thought_id, "output_index": self._thought_index, self._thinking.place: 0}

    def _thought_part(self, text: str) -> dict[str, Any]:
        return {**self._thought_place(), "part": self._thinking.made(text=text)}

    def _keep(self, event: ProviderBlock) -> None:
        self._provider_blocks.append(event)

    def _seal(self) -> None:
        """An engine's own blocks are kept; whoever asked for them gets them sealed, and may bring them back."""
        if not self._provider_blocks:
            return
        self.blocks = Sealed(
            dialect=self._provider_blocks[0].dialect,
            blocks=[piece.block for piece in self._provider_blocks],
            says=digest("".join(self._words), self._called),
        )
        if self._seal_with is None:
            return
        sealed = self._seal_with(json.encode(self.blocks))
        item_id, index = self._name("rs")
        opened = wire.ReasoningItem(id=item_id, summary=[], status="in_progress")
        self.emit("response.output_item.added", {"output_index": index, "item": opened})
        item = wire.ReasoningItem(id=item_id, summary=[], encrypted_content=sealed, status="completed")
        self._finish(index, item)

    def _step(self, event: StepEnded) -> None:
        """Another answer begins: what was said stands, and the blocks of its answer belong to the agent alone."""
        self._close_thought()
        self._close_text()
        self._provider_blocks.clear()
        self._words.clear()
        self._called.clear()

    # calls

    def _start_call(self, event: ToolCallStarted) -> None:
        self._close_thought()
        self._close_text()
        known = self._told.get(event.name) or options.Told(event.name, None, False)
        call = _Call(*self._name("ctc" if known.custom else "fc"), event.id, known)
        self._calls[event.index] = call
        item = _call_item(call, "", "in_progress")
        self.emit("response.output_item.added", {"output_index": call.index, "item": item})

    def _spell_call(self, event: ToolCallDelta) -> None:
        call = self._calls.get(event.index)
        if call is None or not event.fragment:
            return
        call.sent.append(event.fragment)
        if not call.known.custom:  # the text of a free-form tool is inside its arguments
            self._deltas("response.function_call_arguments", _at(call), event.fragment)

    def _end_call(self, event: ToolCallDone) -> None:
        if event.index not in self._calls:
            self._start_call(ToolCallStarted(event.index, event.call.id, event.call.name))
        call, arguments = self._calls.pop(event.index), bytes(event.call.arguments)
        returned = json.encode({"input": options.input_of(arguments)}) if call.known.custom else arguments
        self._called.append((event.call.id, event.call.name, returned))
        self._done_call(call, arguments.decode(), "completed")

    def _done_call(self, call: _Call, arguments: str, status: str) -> None:
        if call.known.custom:
            arguments = options.input_of(arguments.encode()) if status == "completed" else ""
            self._deltas("response.custom_tool_call_input", _at(call), arguments)
            self.emit("response.custom_tool_call_input.done", {**_at(call), "input": arguments})
        else:
            if not call.sent and arguments:
                self._deltas("response.function_call_arguments", _at(call), arguments)
            done = {**_at(call), "name": call.known.name, "arguments": arguments}
            self.emit("response.function_call_arguments.done", done)
        self._finish(call.index, _call_item(call, arguments, status))

    # frames

    def _name(self, kind: str) -> tuple[str, int]:
        """The next item's id and index. The id tells whose it is, so that a reference to it can be followed."""
        index = self.next()
        return f"{kind}_{self._own}_{index}", index

    def next(self) -> int:
        self._count += 1
        return self._count - 1

    def _finish(self, index: int, item: wire.MessageItem | _CallItem | wire.ReasoningItem) -> None:
        self._finished[index] = Raw(json.encode(item))
        self.emit("response.output_item.done", {"output_index": index, "item": self._finished[index]})

    def _deltas(self, kind: str, place: dict[str, Any], text: str) -> None:
        for piece in pieces(text):
            self.emit(f"{kind}.delta", {**place, "delta": piece})

    def _whole(self, kind: str, resource: wire.Resource) -> None:
        self.emit(kind, {"response": resource})

    def emit(self, kind: str, fields: dict[str, Any]) -> None:
        if self._quiet:
            return
        data = json.encode({"type": kind, "sequence_number": self.sequence, **fields})
        self.sequence += 1
        self._out.append((kind, data))

    def taken(self) -> list[Frame]:
        out, self._out = self._out, []
        return out


_DELTA: Final = b'{"type":"response.output_text.delta","sequence_number":'
_ADD: Final[dict[type, Any]] = {
    ReasoningDelta: AnswerEncoder._think,
    RefusalDelta: AnswerEncoder._decline,
    Cited: AnswerEncoder._cite,
    ToolCallStarted: AnswerEncoder._start_call,
    ToolCallDelta: AnswerEncoder._spell_call,
    ToolCallDone: AnswerEncoder._end_call,
    ProviderBlock: AnswerEncoder._keep,
    StepEnded: AnswerEncoder._step,
}


def _call_item(call: _Call, said: str, status: str) -> _CallItem:
    """said: the arguments, or the text of a free-form tool."""
    name, space = call.known.name, call.known.namespace or UNSET
    if call.known.custom:
        return wire.CustomCallItem(
            id=call.id, call_id=call.call_id, name=name, input=said, status=status, namespace=space
        )
    return wire.CallItem(id=call.id, call_id=call.call_id, name=name, arguments=said, status=status, namespace=space)


def _at(call: _Call) -> dict[str, Any]:
    return {"item_id": call.id, "output_index": call.index}
