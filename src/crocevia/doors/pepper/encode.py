"""From events to the wire. Pure: bytes out, no I/O."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Raw, UnsetType

from crocevia.core import json
from crocevia.core.answers import Answer
from crocevia.core.catalogue import ModelSpec
from crocevia.core.errors import GatewayError
from crocevia.core.events import CUT_SHORT, ModelEvent, TextDelta, ToolCallDone
from crocevia.core.messages import ToolCall
from crocevia.core.usage import Usage
from crocevia.doors.pepper import wire
from crocevia.doors.pepper.errors import failure

# A character takes at most six bytes, so that no `delta` exceeds the 64 KiB at which some readers give up.
_DELTA_CHARACTERS: Final = 10_000


def events(batch: list[ModelEvent]) -> bytes:
    """The events of one batch; empty if none of them shows on the wire. Neighbouring texts become one `delta`."""
    if len(batch) == 1 and type(batch[0]) is TextDelta:
        return _deltas(batch[0].text)
    out: list[bytes] = []
    text: list[str] = []
    for event in batch:
        if isinstance(event, TextDelta):
            text.append(event.text)
        elif isinstance(event, ToolCallDone):
            out.append(_deltas("".join(text)))
            text.clear()
            out.append(_event(b"tool_call", json.encode(_asked(event.call))))
    out.append(_deltas("".join(text)))
    return b"".join(out)


def done(answer: Answer, model: ModelSpec) -> bytes:
    """The event that closes an answer."""
    return _event(
        b"done",
        json.encode(
            wire.Ending(
                stop_reason=_stop_reason(answer),
                usage=usage(answer.usage),
                versione=model.name,
                novita=model.novelty,
                blocchi=_blocks(answer),
                troncato=_cut_short(answer),
            )
        ),
    )


def failed(error: GatewayError) -> bytes:
    """The event that closes a stream that cannot go on."""
    return _event(b"error", json.encode(failure(error)))


def whole(answer: Answer, model: ModelSpec) -> bytes:
    """The JSON answer."""
    return json.encode(
        wire.Reply(
            stop_reason=_stop_reason(answer),
            content=answer.text or None,
            tool_calls=[_asked(call) for call in answer.tool_calls],
            usage=usage(answer.usage),
            versione=model.name,
            novita=model.novelty,
            blocchi=_blocks(answer),
            troncato=_cut_short(answer),
        )
    )


def _deltas(text: str) -> bytes:
    if len(text) <= _DELTA_CHARACTERS:
        return b'event: delta\ndata: {"text":' + json.encode(text) + b"}\n\n" if text else b""
    return b"".join(
        _deltas(text[start : start + _DELTA_CHARACTERS]) for start in range(0, len(text), _DELTA_CHARACTERS)
    )


def _event(name: bytes, data: bytes) -> bytes:
    # A provider's own spelling may hold line breaks between its tokens: there they mean nothing, here a new field.
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    return b"event: " + name + b"\ndata: " + data + b"\n\n"


def _asked(call: ToolCall) -> wire.AskedTool:
    return wire.AskedTool(call.id, call.name, call.arguments)


def _stop_reason(answer: Answer) -> str:
    # Also where it was cut short: a whole call among the blocks is to be answered, or the next message is refused.
    return "tool_use" if answer.tool_calls else "end_turn"


def _cut_short(answer: Answer) -> bool | UnsetType:
    return True if answer.stop in CUT_SHORT else UNSET


def usage(found: Usage) -> wire.Usage:
    """The four figures."""
    return wire.Usage(found.input_tokens, found.output_tokens, found.cache_read_tokens, found.cache_write_tokens)


def _blocks(answer: Answer) -> list[Raw]:
    if answer.blocks:
        return [piece.block for piece in answer.blocks]
    text = [Raw(json.encode(wire.TextBlock(answer.text)))] if answer.text else []
    return text + [Raw(json.encode(wire.ToolBlock(call.id, call.name, call.arguments))) for call in answer.tool_calls]
