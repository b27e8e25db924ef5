"""From a model's events to the chunks of `/v1/chat/completions`. Pure: bytes out, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from crocevia.core import json
from crocevia.core.answers import Answer
from crocevia.core.events import (
    DELTA_CHARACTERS,
    ReasoningDelta,
    RefusalDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    is_silent,
    pieces,
)
from crocevia.core.messages import ToolCall
from crocevia.core.usage import Usage
from crocevia.doors.responses import options
from crocevia.doors.responses.chat import wire
from crocevia.runtime.turns.run_service import RunEvent, StepEnded

# What is said beside the text, and under which name.
_SAID: Final[dict[type, str]] = {ReasoningDelta: "reasoning_content", RefusalDelta: "refusal"}
_NONE_TOLD: Final[Mapping[str, options.Told]] = {}
_FINISHES: Final = {
    StopReason.MAX_TOKENS: "length",
    StopReason.INCOMPLETE: "length",
    StopReason.REFUSAL: "content_filter",
}


class ChatEncoder:
    """The state of one stream: every chunk has the same id; the first one names the role."""

    def __init__(
        self,
        completion_id: str,
        created: int,
        model: str,
        *,
        usage: bool,
        told: Mapping[str, options.Told] = _NONE_TOLD,
    ) -> None:
        self._told = told
        self._custom: dict[int, str] = {}
        head = {"id": completion_id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._head = b"data: " + json.encode(head)[:-1]
        self._tail = (b',"usage":null' if usage else b"") + b"}\n\n"
        self._text_head = self._head + b',"choices":[{"index":0,"delta":{"content":'
        self._text_tail = b'},"logprobs":null,"finish_reason":null}]' + self._tail
        self._usage = usage
        self._begun: set[int] = set()
        self._spelled: set[int] = set()
        self._said = self._gap = False
        self.started = False

    def feed(self, batch: Sequence[RunEvent]) -> bytes:
        """The chunks of one batch; neighbouring texts become one."""
        if not self.started and is_silent(batch):
            return b""
        out = [] if self.started else [self.begin()]
        texts: list[str] = []
        for event in batch:
            if type(event) is TextDelta:
                texts.append(event.text if not self._gap else f"\n\n{event.text}")
                self._gap, self._said = False, True
                continue
            chunk = self._other(event)
            if chunk:
                if texts:
                    out.append(self._text("".join(texts)))
                    texts.clear()
                out.append(chunk)
        if texts:
            out.append(self._text("".join(texts)))
        return b"".join(out)

    def begin(self) -> bytes:
        self.started = True
        return self._chunk({"role": "assistant", "content": ""})

    def end(self, answer: Answer) -> bytes:
        """The last chunks, up to `[DONE]`."""
        out = b"" if self.started else self.begin()
        out += self._chunk({}, finish(answer))
        if self._usage:
            out += self._head + b',"choices":[],"usage":' + json.encode(counted(answer.usage)) + b"}\n\n"
        return out + b"data: [DONE]\n\n"

    def _text(self, text: str) -> bytes:
        if len(text) > DELTA_CHARACTERS:
            return b"".join(map(self._text, pieces(text)))
        return self._text_head + json.encode(text) + self._text_tail

    def _other(self, event: RunEvent) -> bytes:
        if isinstance(event, StepEnded):
            self._gap = self._said
            return b""
        if isinstance(event, ToolCallStarted):
            return self._start(event.index, event.id, event.name)
        if isinstance(event, ToolCallDelta):
            return self._spell(event.index, event.fragment)
        if isinstance(event, ToolCallDone):
            return self._done(event)
        name = _SAID.get(type(event))
        if name is None:
            return b""
        return b"".join(self._chunk({name: piece}) for piece in pieces(event.text))  # type: ignore[union-attr]  # see _SAID

    def _start(self, index: int, call_id: str, name: str) -> bytes:
        self._begun.add(index)
        if name in self._told:
            custom = {"name": self._told[name].name, "input": ""}
            self._custom[index] = name
            return self._chunk({"tool_calls": [{"index": index, "id": call_id, "type": "custom", "custom": custom}]})
        function = {"name": name, "arguments": ""}
        return self._chunk({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]})

    def _spell(self, index: int, fragment: str) -> bytes:
        if index in self._custom:
            return b""  # its text is inside the arguments: it is told when they are whole
        self._spelled.add(index)
        return b"".join(
            self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in pieces(fragment)
        )

    def _done(self, event: ToolCallDone) -> bytes:
        """Nothing, where the call was spelled out before; else all of it."""
        if event.index in self._spelled:
            return b""
        begun = b"" if event.index in self._begun else self._start(event.index, event.call.id, event.call.name)
        if event.index in self._custom:
            text = options.input_of(bytes(event.call.arguments))
            return begun + self._chunk({"tool_calls": [{"index": event.index, "custom": {"input": text}}]})
        return begun + self._spell(event.index, bytes(event.call.arguments).decode())

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._head + b',"choices":[' + json.encode(choice) + b"]" + self._tail


def _called(call: ToolCall, told: Mapping[str, options.Told]) -> wire.Called | wire.CustomCall:
    if call.name in told:
        text = options.input_of(bytes(call.arguments))
        return wire.CustomCall(id=call.id, custom=wire.CalledCustom(told[call.name].name, text))
    return wire.Called(id=call.id, function=wire.CalledFunction(call.name, bytes(call.arguments).decode()))


def whole(
    answer: Answer, completion_id: str, created: int, model: str, told: Mapping[str, options.Told] = _NONE_TOLD
) -> bytes:
    """The JSON answer."""
    calls = [_called(call, told) for call in answer.tool_calls]
    said = wire.Said(
        role="assistant",
        content=answer.text or (None if calls or answer.refusal else ""),
        refusal=answer.refusal or None,
        reasoning_content=answer.reasoning or None,
        tool_calls=calls or None,
    )
    choice = wire.Answered(message=said, finish_reason=finish(answer))
    return json.encode(
        wire.Completion(id=completion_id, created=created, model=model, choices=[choice], usage=counted(answer.usage))
    )


def finish(answer: Answer) -> str:
    """Why it ended. A refusal in words is an answer."""
    cut = _FINISHES.get(answer.stop) if answer.stop is not None and not answer.refusal else None
    return cut or ("tool_calls" if answer.tool_calls else "stop")


def counted(usage: Usage) -> wire.Usage | None:
    """Tokens; None when the provider did not count the two that matter."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return wire.Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        prompt_tokens_details=wire.Cached(usage.cache_read_tokens or 0),
        completion_tokens_details=wire.Reasoned(usage.reasoning_tokens or 0),
    )
