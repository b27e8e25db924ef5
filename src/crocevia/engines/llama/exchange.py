"""One answer of the embedded model: the request, what it may say, and its events batch by batch."""

from __future__ import annotations

import secrets
from typing import Any, Final, TypeVar

import msgspec

from crocevia.core.calls import AnswerFormat, ModelRequest
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import (
    ModelEvent,
    StopReason,
    TextDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageReported,
)
from crocevia.core.messages import Tool
from crocevia.core.usage import Usage
from crocevia.engines.llama import prompt
from crocevia.engines.llama.reply import ReplyDecoder
from crocevia.engines.llama.schema import ANY_OBJECT, answer_schema, arguments_schema, call_schema, reply_schema
from crocevia.engines.llama.worker import LlamaSettings, Worker
from crocevia.engines.upstream import endings, sampling
from crocevia.engines.upstream import errors as upstream_errors
from crocevia.engines.upstream.http import HttpResponse
from crocevia.engines.upstream.sse import SseDecoder

S = TypeVar("S", bound=msgspec.Struct)

_PATH = "/v1/chat/completions"
# Against runaway repetition; not for constrained answers, whose JSON repeats by nature.
_REPEAT_PENALTY = 1.1
_CHARACTERS_PER_TOKEN = 16  # no tokenizer packs more on average: longer prompts are refused without counting


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


class _Shown(msgspec.Struct):
    """What the template made of the messages."""

    prompt: str


class _Counted(msgspec.Struct):
    tokens: list[Any]


_decode_chunk = msgspec.json.Decoder(_Chunk).decode
_STOPS: Final = {"stop": StopReason.END, "length": StopReason.MAX_TOKENS}


class LlamaExchange:
    """`begin()` once, then `batch()` until `Stopped`; `close()` on every path. The caller holds the slot."""

    def __init__(
        self, request: ModelRequest, worker: Worker, settings: LlamaSettings, reply_bias: float, deadline: float
    ) -> None:
        request = _plain(request)
        self._request = request
        self._worker = worker
        self._settings = settings
        self._bias = reply_bias
        self._deadline = deadline
        if request.tools:
            self._messages = prompt.chat_with_tools(request.system, request.tools, request.messages)
        else:
            self._messages = prompt.chat(request.system, request.messages)
        self._answered = prompt.answered_calls(request.messages)
        self._only_reply = False
        self._room = 0
        self._input = 0
        self._spent = Usage(input_tokens=0, output_tokens=0, cache_read_tokens=0)
        self._reset()
        self.stopped = False

    def _reset(self) -> None:
        self._response: HttpResponse | None = None
        self._sse = SseDecoder()
        self._reply = ReplyDecoder() if self._request.tools else None
        self._tokens = 0
        self._usage: _Usage | None = None
        self._finish: str | None = None
        self._repeated = False

    async def begin(self) -> None:
        """Count the prompt and send it. Raises GatewayError: INVALID_REQUEST when it is too long."""
        self._input = await self._count()
        if self._input > self._settings.max_prompt:
            raise self._too_long(self._input)
        self._room = self._settings.context - self._input
        await self._send()

    async def batch(self) -> list[ModelEvent]:
        """The events of the next read that has any; empty after `Stopped`."""
        out: list[ModelEvent] = []
        while not out and not self.stopped:
            assert self._response is not None
            data = await self._response.chunk()
            for event in self._sse.feed(data) if data else self._sse.flush():
                self._take(event.data, out)
            if not data and not self.stopped:
                raise upstream_errors.cut()
            if self._repeated:
                await self._insist()
        return out

    def close(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            (response.finish if self.stopped else response.close)()

    def _take(self, data: bytes, out: list[ModelEvent]) -> None:
        if data == b"[DONE]":
            self._end(out)
            return
        try:
            chunk = _decode_chunk(data)
        except upstream_errors.UNREADABLE:
            if not data.strip():
                return
            raise upstream_errors.malformed() from None
        if chunk.error:
            raise upstream_errors.from_stream(chunk.error)
        self._usage = chunk.usage or self._usage
        for choice in chunk.choices:
            self._finish = choice.finish_reason or self._finish
            if choice.delta is not None and choice.delta.content:
                self._tokens += 1
                text = self._reply.feed(choice.delta.content) if self._reply else choice.delta.content
                if text:
                    out.append(TextDelta(text))
                out.append(UsageReported(self._used()))

    def _end(self, out: list[ModelEvent]) -> None:
        call = self._reply.call(f"call_{secrets.token_hex(12)}") if self._reply else None
        free = self._request.options.tool_choice.mode == "auto"
        if free and call is not None and prompt.call_key(call) in self._answered:
            self._repeated = True
            return
        if self._reply and (rest := self._reply.flush()):
            out.append(TextDelta(rest))
        if call is not None:
            out += (ToolCallStarted(0, call.id, call.name), ToolCallDone(0, call))
        finish = self._finish
        if call is not None:
            finish = "stop"  # a whole call stands, whatever cut what might have followed
        elif self._reply and not self._reply.speaks and finish == "stop":
            finish = "half_a_call"
        out += (UsageReported(self._used()), endings.stopped(finish, _STOPS, calls=call is not None))
        self.stopped = True

    def _used(self) -> Usage:
        """What this exchange consumed so far: counted by us until the model's own figures come."""
        if self._usage is None:
            now = Usage(input_tokens=self._input, output_tokens=self._tokens, estimated=True)
        else:
            details = self._usage.prompt_tokens_details
            now = Usage(
                input_tokens=self._usage.prompt_tokens,
                output_tokens=self._usage.completion_tokens,
                cache_read_tokens=details.cached_tokens if details else None,
            )
        return self._spent + now

    async def _insist(self) -> None:
        """The model asks again for what it has already been told: let it only speak."""
        self._spent = self._used()
        assert self._response is not None
        self._response.finish()
        self._reset()
        self._only_reply = True
        await self._send()

    async def _send(self) -> None:
        self._response = await self._open()
        if self._response.status == 400 and self._request.tools and await self._loosen():
            self._response.close()
            self._response = await self._open()
        if self._response.status == 400 and self._request.options.format is not None:
            param = self._request.options.format.param
            raise GatewayError(Reason.FORMAT_UNSUPPORTED, param=param, field=param)
        if self._response.status != 200:
            raise upstream_errors.from_status(self._response.status, b"", None)

    async def _open(self) -> HttpResponse:
        left = self._request.options.max_tokens - (self._spent.output_tokens or 0)
        body: dict[str, Any] = {
            "messages": self._messages,
            "max_tokens": max(1, min(left, self._room)),
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._request.tools:
            body["response_format"] = _format(self._choices())
            if not self._answered and self._request.options.tool_choice.mode == "auto":
                body["logit_bias"] = [["reply", self._bias]]
        elif self._request.options.format is not None:
            body["response_format"] = _answer_format(self._request.options.format)
        else:
            body["repeat_penalty"] = _REPEAT_PENALTY
        given = sampling.given(self._request)
        if self._request.tools:
            given.pop("stop", None)  # it would cut the JSON that everything is said in
        body |= given
        return await self._worker.open("POST", _PATH, body, self._deadline)

    def _choices(self) -> list[dict[str, Any]]:
        if self._only_reply:
            return [reply_schema()]
        choice = self._request.options.tool_choice
        tools = [tool for tool in self._request.tools if choice.name in (None, tool.name)]
        return [*map(self._call_schema, tools), *([] if choice.mode == "required" else [reply_schema()])]

    def _call_schema(self, tool: Tool) -> dict[str, Any]:
        loose = bytes(tool.parameters) in self._worker.refused
        return call_schema(tool.name, ANY_OBJECT if loose else arguments_schema(tool.parameters))

    async def _loosen(self) -> bool:
        """Find the tools whose schema the grammar refuses; from then on they take any object. False: there are none."""
        found = False
        for tool in self._request.tools:
            body = {
                "messages": [{"role": "user", "content": "."}],
                "max_tokens": 1,
                "response_format": _format([self._call_schema(tool)]),
            }
            status, _ = await self._worker.ask(_PATH, body, self._deadline)
            if status == 400 and bytes(tool.parameters) not in self._worker.refused:
                self._worker.refused.add(bytes(tool.parameters))
                found = True
        return found

    async def _count(self) -> int:
        """Tokens of the prompt, by the model's own template and tokenizer."""
        characters = sum(len(message["content"]) for message in self._messages)
        if characters > self._settings.max_prompt * _CHARACTERS_PER_TOKEN:
            raise self._too_long(characters // _CHARACTERS_PER_TOKEN)
        _, shown = await self._worker.ask("/apply-template", {"messages": self._messages}, self._deadline)
        body = {"content": _read(shown, _Shown).prompt, "add_special": True, "parse_special": True}
        _, counted = await self._worker.ask("/tokenize", body, self._deadline)
        return len(_read(counted, _Counted).tokens)

    def _too_long(self, count: int) -> GatewayError:
        limit = self._settings.max_prompt
        return GatewayError(Reason.EMBEDDED_PROMPT_TOO_LONG, param="messages", count=count, limit=limit)


def _read(answer: Any, shape: type[S]) -> S:
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError:
        raise upstream_errors.malformed() from None


def _plain(request: ModelRequest) -> ModelRequest:
    """Tools that may not be called need not be shown. Raises GatewayError(UNSUPPORTED): tools and a format at once."""
    if request.options.tool_choice.mode == "none":
        request = msgspec.structs.replace(request, tools=())
    if request.options.format is not None and request.tools:
        param = request.options.format.param
        raise GatewayError(Reason.FORMAT_WITH_TOOLS, param=param, field=param)
    return request


def _answer_format(wanted: AnswerFormat) -> dict[str, Any]:
    if wanted.any_object:
        return {"type": "json_object"}
    schema = answer_schema(wanted.schema)
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def _format(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": {"anyOf": choices}}}
