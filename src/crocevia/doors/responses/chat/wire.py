"""The wire of `/v1/chat/completions`. Unknown fields are ignored and null stands for absent."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from crocevia.doors.responses.wire import Choice, Part, nothing


class Function(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    description: str | None = None
    parameters: Raw = msgspec.field(default_factory=nothing)
    strict: bool | None = None
    arguments: str | None = None


class Custom(msgspec.Struct, frozen=True, kw_only=True):
    """A free-form tool, or a call of one."""

    name: str | None = None
    description: str | None = None
    format: Any = None
    input: str | None = None


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    type: str = "function"
    function: Function | None = None
    custom: Custom | None = None


class AskedCall(msgspec.Struct, frozen=True, kw_only=True):
    id: str | None = None
    function: Function | None = None
    custom: Custom | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    role: str
    content: str | list[Part] | None = None
    refusal: str | None = None
    tool_calls: list[AskedCall] | None = None
    tool_call_id: str | None = None


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    include_usage: bool | None = None


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    schema: Raw = msgspec.field(default_factory=nothing)
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    json_schema: Schema | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    model: str | None = None
    reasoning_effort: str | None = None
    messages: list[Message] = []
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[Tool] | None = None
    tool_choice: str | Choice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    n: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    user: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    verbosity: str | None = None
    # Fields of other surfaces, which are refused by name: see `fields`.
    functions: Any = None
    function_call: Any = None
    web_search_options: Any = None
    conversation: Any = None
    prompt: Any = None
    moderation: Any = None
    audio: Any = None
    image: Any = None
    modalities: Any = None
    prediction: Any = None
    logit_bias: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    input: Any = None
    instructions: Any = None
    previous_response_id: Any = None
    text: Any = None
    reasoning: Any = None
    max_output_tokens: Any = None
    max_tool_calls: Any = None
    include: Any = None
    truncation: Any = None
    background: Any = None
    background_options: Any = None
    context_management: Any = None


class Cached(msgspec.Struct, frozen=True):
    cached_tokens: int


class Reasoned(msgspec.Struct, frozen=True):
    reasoning_tokens: int


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: Cached
    completion_tokens_details: Reasoned


class CalledFunction(msgspec.Struct, frozen=True):
    name: str
    arguments: str


class Called(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="function"):
    id: str
    function: CalledFunction


class CalledCustom(msgspec.Struct, frozen=True):
    name: str
    input: str


class CustomCall(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="custom"):
    id: str
    custom: CalledCustom


class Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    role: str
    content: str | None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Called | CustomCall] | None = None


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    index: int = 0
    message: Said
    logprobs: None = None
    finish_reason: str


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    object: str = "chat.completion"
    created: int
    model: str
    choices: list[Answered]
    usage: Usage | None
