"""OpenAI's Responses API, without its server-side memory: requests. `responses_stream.py` reads the answers.

`store` is off and reasoning comes encrypted, so that a conversation lives with its owner and goes back whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from crocevia.core.calls import Abilities, AnswerFormat, ModelRequest
from crocevia.core.catalogue import ENGINE_TRAITS, EngineSpec
from crocevia.core.messages import AssistantMessage, FilePart, Message, Part, TextPart, Tool, ToolMessage, UserMessage
from crocevia.engines.context import EngineContext
from crocevia.engines.openai.chat import BASE_URL, bearer, is_official
from crocevia.engines.openai.responses_stream import DIALECT, ResponsesDecoder
from crocevia.engines.upstream import reasoning, sampling, shapes
from crocevia.engines.upstream.driver import UpstreamEngine

# These families cannot reason and refuse to be asked for it.
_UNREASONING = re.compile(r"(gpt-3|gpt-4|chatgpt-4)")


# The API has no other; models that reason refuse even these.
_SAMPLING = frozenset({"temperature", "top_p"})


def build(spec: EngineSpec, context: EngineContext) -> UpstreamEngine:
    return UpstreamEngine(spec.name, ResponsesDialect(spec.base_url or BASE_URL, context.api_key), context.http)


class ResponsesDialect:
    """`base_url` is given with `/v1`."""

    name = DIALECT

    def __init__(self, base_url: str, api_key: str | None) -> None:
        base = base_url.rstrip("/")
        self.url = f"{base}/responses"
        self.probe_url = f"{base}/models"
        self.headers: Mapping[str, str] = bearer(api_key)
        self._official = is_official(base)
        needs = ENGINE_TRAITS["openai-responses"].needs
        self._abilities = Abilities(documents=self._official, images=True, needs=needs)

    def encode(self, request: ModelRequest) -> bytes:
        body: dict[str, Any] = {
            "model": request.model,
            "max_output_tokens": request.options.max_tokens,
            "store": False,
            "stream": request.options.stream,
        }
        if not _UNREASONING.match(request.model):
            # Models of today reason unasked; what comes without its encrypted content could not be sent back.
            body["include"] = ["reasoning.encrypted_content"]
            if reasoning.mode(request) != "off":
                summary = request.options.reasoning.summary or "auto"
                body["reasoning"] = {"effort": reasoning.effort(request), "summary": summary}
        if self._official and request.options.session:
            body["prompt_cache_key"] = request.options.session
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            body.update(_choice(request))
        if request.options.format is not None:
            body["text"] = {"format": _format(request.options.format)}
        body.update(sampling.given(request))
        if request.system and request.system.strip():
            body["instructions"] = request.system
        body["input"] = [item for message in request.messages for item in _items(message)]
        return msgspec.json.encode(body)

    def abilities(self, model: str) -> Abilities:
        return self._abilities

    def takes(self, request: ModelRequest) -> frozenset[str]:
        return _SAMPLING if _UNREASONING.match(request.model) or not self._official else frozenset()

    def decoder(self) -> ResponsesDecoder:
        return ResponsesDecoder()


def _choice(request: ModelRequest) -> dict[str, Any]:
    fields: dict[str, Any] = {} if request.options.parallel_tool_calls else {"parallel_tool_calls": False}
    choice = request.options.tool_choice
    if choice.name is not None:
        fields["tool_choice"] = {"type": "function", "name": choice.name}
    elif choice.mode != "auto":
        fields["tool_choice"] = choice.mode
    return fields


def _format(wanted: AnswerFormat) -> dict[str, Any]:
    if wanted.any_object:
        return {"type": "json_object"}
    described = {"description": wanted.description} if wanted.description else {}
    return {
        "type": "json_schema",
        "name": wanted.name,
        "schema": wanted.schema,
        "strict": wanted.strict,
        **described,
    }


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _items(message: Message) -> list[Any]:
    if isinstance(message, UserMessage):
        return [{"role": "user", "content": [_part(part) for part in message.parts]}]
    if isinstance(message, ToolMessage):
        return [{"type": "function_call_output", "call_id": message.call_id, "output": shapes.result_text(message)}]
    if message.provider_blocks is not None and message.provider_blocks.dialect == DIALECT:
        return msgspec.json.decode(message.provider_blocks.blocks, type=list[Raw])
    return _assistant(message)


def _assistant(message: AssistantMessage) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if message.text:
        items.append({"role": "assistant", "content": [{"type": "output_text", "text": message.text}]})
    items += [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": bytes(call.arguments).decode(),
        }
        for call in message.tool_calls
    ]
    return items


def _part(part: Part) -> dict[str, Any]:
    return {"type": "input_text", "text": part.text} if isinstance(part, TextPart) else _file(part)


def _file(part: FilePart) -> dict[str, Any]:
    if part.kind == "image":
        return {"type": "input_image", "image_url": shapes.data_url(part)}
    if (text := shapes.plain_text(part)) is not None:
        return {"type": "input_text", "text": text}
    if part.media_type == "application/pdf":
        return {"type": "input_file", "filename": part.name or "document.pdf", "file_data": shapes.data_url(part)}
    raise shapes.unsupported(part)
