"""The stream of an answer that is over, told again from its items."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from crocevia.doors.responses import wire
from crocevia.doors.responses.encode import AnswerEncoder
from crocevia.doors.responses.frames import Frame


def replayed(resource: wire.Resource) -> list[Frame]:
    """The stream of an answer that is over, told again from its items: each delta is whole."""
    telling = AnswerEncoder()
    opening = msgspec.structs.replace(
        resource, status="in_progress", output=[], usage=None, completed_at=None, error=None, incomplete_details=None
    )
    frames = telling.begin(opening)
    if resource.background:
        telling = AnswerEncoder()
        frames = telling.queued(msgspec.structs.replace(opening, status="queued")) + telling.progress(opening)
    for raw in resource.output:
        frames += _tell(telling, raw)
    if resource.status == "failed" and resource.error is not None:
        fault = resource.error
        return frames + telling.fail({"type": "api_error", "code": fault.code, "message": fault.message}, resource)
    return frames + telling.end(resource)


def _tell(encoder: AnswerEncoder, raw: Raw) -> list[Frame]:
    """The frames of an item that is finished."""
    item = msgspec.json.decode(raw, type=wire.Item)
    kind, index = item.type or "", encoder.next()
    encoder.emit("response.output_item.added", {"output_index": index, "item": _emptied(item)})
    place = {"item_id": item.id, "output_index": index}
    for part, content in enumerate(item.content if isinstance(item.content, list) else []):
        _PARTS[content.type](encoder, {**place, "content_index": part}, content)
    for part, thought in enumerate(item.summary or []):
        here, text = {**place, "summary_index": part}, str(thought.get("text", ""))
        encoder.emit("response.reasoning_summary_part.added", {**here, "part": wire.SummaryText(text="")})
        encoder.emit("response.reasoning_summary_text.delta", {**here, "delta": text})
        encoder.emit("response.reasoning_summary_text.done", {**here, "text": text})
        encoder.emit("response.reasoning_summary_part.done", {**here, "part": wire.SummaryText(text=text)})
    if kind == "function_call":
        done = {"arguments": item.arguments or ""}
        encoder.emit("response.function_call_arguments.delta", {**place, "delta": done["arguments"]})
        encoder.emit("response.function_call_arguments.done", {**place, "name": item.name, **done})
    if kind == "custom_tool_call":
        encoder.emit("response.custom_tool_call_input.delta", {**place, "delta": item.input or ""})
        encoder.emit("response.custom_tool_call_input.done", {**place, "input": item.input or ""})
    encoder.emit("response.output_item.done", {"output_index": index, "item": raw})
    return encoder.taken()


def _emptied(item: wire.Item) -> wire.MessageItem | wire.CallItem | wire.CustomCallItem | wire.ReasoningItem:
    """The item before anything was in it."""
    name = item.id or ""
    if item.type == "function_call":
        call_id, called = item.call_id or "", item.name or ""
        return wire.CallItem(id=name, call_id=call_id, name=called, arguments="", status="in_progress")
    if item.type == "custom_tool_call":
        call_id, called = item.call_id or "", item.name or ""
        return wire.CustomCallItem(id=name, call_id=call_id, name=called, input="", status="in_progress")
    if item.type == "reasoning":
        return wire.ReasoningItem(id=name, summary=[], status="in_progress")
    return wire.MessageItem(id=name, status="in_progress", content=[])


def _say(encoder: AnswerEncoder, at: wire.Extra, part: wire.Part) -> None:
    text, notes = part.text or "", part.annotations or []
    encoder.emit("response.content_part.added", {**at, "part": wire.Said(text="")})
    encoder.emit("response.output_text.delta", {**at, "delta": text, "logprobs": []})
    for index, note in enumerate(notes):
        encoder.emit("response.output_text.annotation.added", {**at, "annotation_index": index, "annotation": note})
    encoder.emit("response.output_text.done", {**at, "text": text, "logprobs": []})
    encoder.emit("response.content_part.done", {**at, "part": wire.Said(text=text, annotations=notes)})


def _decline(encoder: AnswerEncoder, at: wire.Extra, part: wire.Part) -> None:
    text = part.refusal or ""
    encoder.emit("response.content_part.added", {**at, "part": wire.Declined(refusal="")})
    encoder.emit("response.refusal.delta", {**at, "delta": text})
    encoder.emit("response.refusal.done", {**at, "refusal": text})
    encoder.emit("response.content_part.done", {**at, "part": wire.Declined(refusal=text)})


def _think(encoder: AnswerEncoder, at: wire.Extra, part: wire.Part) -> None:
    text = part.text or ""
    encoder.emit("response.content_part.added", {**at, "part": wire.ReasoningText(text="")})
    encoder.emit("response.reasoning.delta", {**at, "delta": text})
    encoder.emit("response.reasoning.done", {**at, "text": text})
    encoder.emit("response.content_part.done", {**at, "part": wire.ReasoningText(text=text)})


_PARTS: Final = {"output_text": _say, "refusal": _decline, "reasoning_text": _think}
