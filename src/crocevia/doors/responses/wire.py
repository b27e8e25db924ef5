"""The wire of `/v1/responses`: Open Responses, release 2026-04-24, and the forms that real clients send beside it.

Unknown fields are ignored and null stands for absent: clients send what their own provider has.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

MAX_ITEMS: Final = 10_000
DEFAULT_MAX_TOKENS: Final = 8192
NOTHING: Final = Raw(b"null")  # JSON of any kind that is not there: `Raw | None` would take nothing but null

Extra: TypeAlias = dict[str, Any]


def nothing() -> Raw:
    """As a factory: a default that is raw JSON could not be told in a schema."""
    return NOTHING


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a file or picture is, as the specification spells it. type: `url` or `base64`."""

    type: str
    url: str | None = None
    media_type: str | None = None
    data: str | None = None
    filename: str | None = None


class ImageAddress(msgspec.Struct, frozen=True, omit_defaults=True):
    """How chat completions spell a picture."""

    url: str
    detail: str | None = None


class AttachedFile(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Where chat completions spell a file: one level deeper."""

    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None


class Part(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One part of a content. Which fields count depends on `type`."""

    type: str
    text: str | None = None
    refusal: str | None = None
    annotations: list[Extra] | None = None
    source: Source | None = None
    image_url: str | ImageAddress | None = None
    detail: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    file: AttachedFile | None = None
    video_url: str | None = None


class Item(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One item of the input. Which fields count depends on `type`; without one it is a message."""

    type: str | None = None
    id: str | None = None
    role: str | None = None
    content: str | list[Part] | None = None
    phase: str | None = None
    status: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: str | None = None
    input: str | None = None
    action: Extra | None = None
    output: str | list[Part] | None = None
    summary: list[Any] | None = None
    encrypted_content: str | None = None
    tools: list[Tool] | None = None


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """Functions, free-form tools (`custom`) and namespaces of both are taken; what else is offered is left out."""

    type: str = "function"
    name: str | None = None
    description: str | None = None
    parameters: Raw = msgspec.field(default_factory=nothing)
    strict: bool | None = None
    format: Any = None
    tools: list[Tool] | None = None
    namespace: str | None = None


def full_name(name: str, namespace: str | None) -> str:
    """What a model is told for a tool in a namespace."""
    return f"{namespace.removesuffix('__')}__{name}" if namespace else name


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A function, or a set of allowed ones. `function`: how chat completions spell the name."""

    type: str
    name: str | None = None
    namespace: str | None = None
    function: Extra | None = None
    custom: Extra | None = None
    mode: str | None = None
    tools: list[Extra] | None = None
    allowed_tools: Extra | None = None


class Format(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    name: str | None = None
    schema: Raw = msgspec.field(default_factory=nothing)
    description: str | None = None
    strict: bool | None = None


class Text(msgspec.Struct, frozen=True, kw_only=True):
    format: Format | None = None
    verbosity: str | None = None


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    effort: str | None = None
    summary: str | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /v1/responses` and, with `type`, of a WebSocket message."""

    type: str | None = None
    model: str | None = None
    input: str | list[Item] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    include: list[str] | None = None
    tools: list[Tool] | None = None
    tool_choice: str | Choice | None = None
    metadata: dict[str, str] | None = None
    text: Text | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: Extra | None = None
    background: bool | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    reasoning: Reasoning | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    truncation: str | None = None
    store: bool | None = None
    service_tier: str | None = None
    top_logprobs: int | None = None
    user: str | None = None
    # Fields of other surfaces, which are refused by name: see `fields`.
    response_format: Any = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    messages: Any = None
    reasoning_effort: Any = None
    verbosity: Any = None
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
    context_management: Any = None
    background_options: Any = None
    n: Any = None
    stop: Any = None
    seed: Any = None


class ShownTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the answer repeats it: all five keys, always."""

    type: str = "function"
    name: str
    description: str | None
    parameters: Raw
    strict: bool | None
    namespace: str | UnsetType = UNSET


class InputDetails(msgspec.Struct, frozen=True):
    cached_tokens: int


class OutputDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class Fault(msgspec.Struct, frozen=True):
    code: str
    message: str


class Incomplete(msgspec.Struct, frozen=True):
    reason: str


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: all 31 keys, null where there is nothing to say."""

    id: str
    object: str = "response"
    created_at: int
    completed_at: int | None = None
    status: str = "in_progress"
    incomplete_details: Incomplete | None = None
    model: str
    previous_response_id: str | None = None
    instructions: str | None = None
    output: list[Raw] = []
    error: Fault | None = None
    tools: list[ShownTool] = []
    tool_choice: str | Extra = "auto"
    truncation: str = "disabled"
    parallel_tool_calls: bool = True
    text: Extra = msgspec.field(default_factory=lambda: {"format": {"type": "text"}})
    top_p: float = 1
    temperature: float = 1
    presence_penalty: float = 0
    frequency_penalty: float = 0
    top_logprobs: int = 0
    reasoning: Extra | None = None
    usage: Usage | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    store: bool = True
    background: bool = False
    service_tier: str = "default"
    metadata: dict[str, str] = {}
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None


class Said(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="output_text"):
    """`output_text`. Older validators insist on `logprobs`."""

    text: str
    annotations: list[Extra] = []
    logprobs: list[Extra] = []


class Declined(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="refusal"):
    refusal: str


class MessageItem(msgspec.Struct, frozen=True, kw_only=True):
    type: str = "message"
    id: str
    status: str
    role: str = "assistant"
    content: list[Said | Declined]


class CallItem(msgspec.Struct, frozen=True, kw_only=True):
    type: str = "function_call"
    id: str
    call_id: str
    name: str
    arguments: str
    status: str
    namespace: str | UnsetType = UNSET


class CustomCallItem(msgspec.Struct, frozen=True, kw_only=True):
    type: str = "custom_tool_call"
    id: str
    call_id: str
    name: str
    input: str
    status: str
    namespace: str | UnsetType = UNSET


class SummaryText(msgspec.Struct, frozen=True, kw_only=True):
    type: str = "summary_text"
    text: str


class ReasoningText(msgspec.Struct, frozen=True, kw_only=True):
    type: str = "reasoning_text"
    text: str


class ReasoningItem(msgspec.Struct, frozen=True, kw_only=True):
    type: str = "reasoning"
    id: str
    summary: list[SummaryText]
    content: list[ReasoningText] | UnsetType = UNSET
    encrypted_content: str | UnsetType = UNSET
    status: str


class CompactionItem(msgspec.Struct, frozen=True, kw_only=True):
    type: str = "compaction"
    id: str
    encrypted_content: str


class Compacted(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    object: str = "response.compaction"
    created_at: int
    output: list[CompactionItem]
    usage: Usage | None


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """details: of a missing scope, whose answer has neither code nor param."""

    message: str
    type: str
    code: str | None = None
    param: str | None = None
    details: Extra | None = None


class Refusal(msgspec.Struct, frozen=True):
    error: Refused


class EmbeddingRequest(msgspec.Struct, frozen=True, kw_only=True):
    model: str | None = None
    input: str | list[Any] | None = None
    encoding_format: str | None = None
    dimensions: int | None = None
    user: str | None = None
