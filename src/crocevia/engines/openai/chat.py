"""Chat completions, of OpenAI and of every server that speaks like it: requests. `chat_stream.py` reads the answers.

Only OpenAI's own addresses are sent fields that other servers do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from crocevia.core.calls import Abilities, AnswerFormat, ModelRequest
from crocevia.core.catalogue import ENGINE_TRAITS, EngineSpec
from crocevia.core.messages import AssistantMessage, FilePart, Message, Part, TextPart, Tool, ToolMessage, UserMessage
from crocevia.engines.context import EngineContext
from crocevia.engines.openai.chat_stream import ChatDecoder
from crocevia.engines.upstream import reasoning, sampling, shapes
from crocevia.engines.upstream.driver import UpstreamEngine

BASE_URL = "https://api.openai.com/v1"


def build(spec: EngineSpec, context: EngineContext) -> UpstreamEngine:
    return UpstreamEngine(spec.name, ChatDialect(spec.base_url or BASE_URL, context.api_key), context.http)


def bearer(api_key: str | None) -> dict[str, str]:
    """The headers of OpenAI's APIs; a local server needs no key."""
    return {"Content-Type": "application/json", **({"Authorization": f"Bearer {api_key}"} if api_key else {})}


def is_official(url: str) -> bool:
    """Whether OpenAI itself (or its Azure twin) is at this address."""
    host = urlsplit(url).hostname or ""
    return host == "api.openai.com" or host.endswith((".api.openai.com", ".openai.azure.com"))


class ChatDialect:
    """`base_url` is given with `/v1`. No provider blocks: what the protocol has, messages and tool calls say."""

    name = "plain"

    def __init__(self, base_url: str, api_key: str | None) -> None:
        base = base_url.rstrip("/")
        self.url = f"{base}/chat/completions"
        self.probe_url = f"{base}/models"
        self.headers: Mapping[str, str] = bearer(api_key)
        self._official = is_official(base)
        needs = ENGINE_TRAITS["openai-chat"].needs
        self._abilities = Abilities(documents=self._official, images=True, needs=needs)

    def encode(self, request: ModelRequest) -> bytes:
        # OpenAI's reasoning models refuse the old name of the limit; older servers do not know the new one.
        limit = "max_completion_tokens" if self._official else "max_tokens"
        asked = request.options
        body: dict[str, Any] = {"model": request.model, limit: asked.max_tokens, "stream": asked.stream}
        if asked.stream:
            body["stream_options"] = {"include_usage": True}
        mode = reasoning.mode(request)
        if mode == "on" or (mode == "always" and asked.reasoning.effort is not None):
            body["reasoning_effort"] = reasoning.effort(request) if self._official else reasoning.of_three(request)
        if self._official and asked.session:
            body["prompt_cache_key"] = asked.session
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            body.update(_choice(request))
        if asked.format is not None:
            body["response_format"] = _format(asked.format)
        body.update(sampling.given(request))
        body["messages"] = self._messages(request)
        return msgspec.json.encode(body)

    def abilities(self, model: str) -> Abilities:
        return self._abilities

    def takes(self, request: ModelRequest) -> frozenset[str]:
        return sampling.ALL

    def decoder(self) -> ChatDecoder:
        return ChatDecoder()

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        encoded: list[dict[str, Any]] = []
        if request.system and request.system.strip():
            encoded.append({"role": "system", "content": request.system})
        for message in request.messages:
            one = self._message(message)
            if one is not None:
                encoded.append(one)
        return encoded

    def _message(self, message: Message) -> dict[str, Any] | None:
        if isinstance(message, UserMessage):
            return {"role": "user", "content": self._content(message)}
        if isinstance(message, ToolMessage):
            return {"role": "tool", "tool_call_id": message.call_id, "content": shapes.result_text(message)}
        return _assistant(message)

    def _content(self, message: UserMessage) -> str | list[dict[str, Any]]:
        parts = [self._part(part) for part in message.parts]
        if len(parts) == 1 and parts[0]["type"] == "text":
            # The plain form, which every server takes.
            text: str = parts[0]["text"]
            return text
        return parts

    def _part(self, part: Part) -> dict[str, Any]:
        return {"type": "text", "text": part.text} if isinstance(part, TextPart) else self._file(part)

    def _file(self, part: FilePart) -> dict[str, Any]:
        if part.kind == "image":
            return {"type": "image_url", "image_url": {"url": shapes.data_url(part)}}
        if (text := shapes.plain_text(part)) is not None:
            return {"type": "text", "text": text}
        if self._official and part.media_type == "application/pdf":
            name = part.name or "document.pdf"
            return {"type": "file", "file": {"filename": name, "file_data": shapes.data_url(part)}}
        raise shapes.unsupported(part)


def _choice(request: ModelRequest) -> dict[str, Any]:
    """Only what is not the default: many servers know no more."""
    fields: dict[str, Any] = {} if request.options.parallel_tool_calls else {"parallel_tool_calls": False}
    choice = request.options.tool_choice
    if choice.name is not None:
        fields["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.mode != "auto":
        fields["tool_choice"] = choice.mode
    return fields


def _format(wanted: AnswerFormat) -> dict[str, Any]:
    if wanted.any_object:
        return {"type": "json_object"}
    described = {"description": wanted.description} if wanted.description else {}
    schema = {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict, **described}
    return {"type": "json_schema", "json_schema": schema}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _assistant(message: AssistantMessage) -> dict[str, Any] | None:
    encoded: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if message.tool_calls:
        encoded["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": bytes(call.arguments).decode()},
            }
            for call in message.tool_calls
        ]
    return encoded if message.text or message.tool_calls else None
