"""Anthropic's Messages API: requests. `stream.py` reads the answers.

Requests of one conversation share their beginning byte for byte (tools, system, then history), and the cache marks
sit on tools, system and the last two user messages: never inside blocks that the provider gave us.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, get_args

import msgspec
from msgspec import Raw

from crocevia.core.calls import Abilities, AnswerFormat, ModelRequest, ReasoningMode
from crocevia.core.catalogue import ENGINE_TRAITS, EngineSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import AssistantMessage, FilePart, Message, Part, TextPart, Tool, ToolMessage, UserMessage
from crocevia.core.needs import Continuation
from crocevia.engines.anthropic.stream import DIALECT, AnthropicDecoder
from crocevia.engines.context import EngineContext
from crocevia.engines.upstream import reasoning, sampling, shapes
from crocevia.engines.upstream.driver import UpstreamEngine

_BASE_URL = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_MARK = {"type": "ephemeral"}
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_BLANK_TEXT = re.compile(rb'"text"\s*:\s*"(?:\s|\\[nrtu0-9a-fA-F])*"')
_MIN_THINKING, _MAX_THINKING = 1024, 32_000
_SHARE = {"low": 0.25, "medium": 0.5, "high": 0.75}  # of the limit, for thoughts


class _Thinking(msgspec.Struct, frozen=True):
    """How a family of models is asked to think, and not to. None: the field is left out."""

    on: str | None
    off: str | None = None


# By the documented behaviour of each family; the first pattern that is found decides. A model that cannot stop
# thinking (or does not think unless asked) is sent no field; one that thinks unasked is told not to.
_FAMILIES: tuple[tuple[re.Pattern[str], _Thinking], ...] = (
    (re.compile(r"claude-(instant|2|3-(opus|sonnet|haiku)|3-5)"), _Thinking(None)),
    (re.compile(r"claude-(3-7|(opus|sonnet|haiku)-4-(20\d{6}|[015](?!\d)))"), _Thinking("enabled")),
    (re.compile(r"claude-sonnet-5-[5-9]"), _Thinking("adaptive", "between_tools")),
    (re.compile(r"claude-(opus-5(?!-\d(?!\d))|sonnet-5|haiku-5)"), _Thinking("adaptive", "disabled")),
)
_TODAY = _Thinking("adaptive")
# Of those that are sent no field when off: these think all the same.
_CANNOT_STOP = re.compile(r"claude-(opus-5-[5-9]|fable)")
_THINKS = frozenset({"enabled", "adaptive", "between_tools"})
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_SAMPLING = {"temperature": "temperature", "top_p": "top_p", "stop": "stop_sequences"}


def build(spec: EngineSpec, context: EngineContext) -> UpstreamEngine:
    dialect = AnthropicDialect(spec.base_url or _BASE_URL, context.api_key)
    return UpstreamEngine(spec.name, dialect, context.http)


class AnthropicDialect:
    """`base_url` is given without `/v1`."""

    name = DIALECT

    def __init__(self, base_url: str, api_key: str | None) -> None:
        base = base_url.rstrip("/").removesuffix("/v1")
        self.url = f"{base}/v1/messages"
        self.probe_url = f"{base}/v1/models?limit=1"
        self.headers: Mapping[str, str] = {
            "Content-Type": "application/json",
            "anthropic-version": _VERSION,
            **({"x-api-key": api_key} if api_key else {}),
        }

    def encode(self, request: ModelRequest) -> bytes:
        body: dict[str, Any] = {"model": request.model, **_limits(request), "stream": request.options.stream}
        body |= {_SAMPLING[name]: value for name, value in sampling.given(request).items()}
        if request.tools:
            body["tools"] = _tools(request.tools)
            body.update(_choice(request))
        config = _output(request)
        if config:
            body["output_config"] = config
        if request.system and request.system.strip():
            body["system"] = [{"type": "text", "text": request.system, "cache_control": _MARK}]
        body["messages"] = _messages(request.messages)
        return msgspec.json.encode(body)

    def abilities(self, model: str) -> Abilities:
        return _ABILITIES[_CANNOT_STOP.search(model) is None, _ends_with_assistant(model)]

    def takes(self, request: ModelRequest) -> frozenset[str]:
        if _thinking(request.model, _mode(request)) in _THINKS:
            return frozenset({"stop"})
        # Models of today take one of the two, not both.
        both = request.options.sampling.temperature is not None
        return frozenset({"stop", "temperature"} if both else {"stop", "top_p"})

    def decoder(self) -> AnthropicDecoder:
        return AnthropicDecoder()


def _ends_with_assistant(model: str) -> Continuation:
    """Whether a model goes on with what its history makes it have said; those that cannot are the newer ones."""
    if "claude" not in model or any(pattern.search(model) for pattern, _ in _FAMILIES[:2]):
        return "without_reasoning"
    return "never"


_ABILITIES: dict[tuple[bool, Continuation], Abilities] = {
    (can_stop, end): Abilities(
        without_reasoning=can_stop,
        documents=True,
        images=True,
        needs=msgspec.structs.replace(ENGINE_TRAITS["anthropic"].needs, ends_with_assistant=end),
    )
    for can_stop in (True, False)
    for end in get_args(Continuation)
}


def _limits(request: ModelRequest) -> dict[str, Any]:
    """`max_tokens` and, where the model is to think, how. Thinking counts towards the limit."""
    limit = request.options.max_tokens
    kind = _thinking(request.model, _mode(request))
    if kind is None:
        return {"max_tokens": limit}
    if kind != "enabled":
        return {"max_tokens": limit, "thinking": {"type": kind}}
    budget = min(max(_MIN_THINKING, int(limit * _SHARE[reasoning.of_three(request)])), _MAX_THINKING)
    return {
        "max_tokens": limit if budget < limit else limit + budget,
        "thinking": {"type": kind, "budget_tokens": budget},
    }


def _output(request: ModelRequest) -> dict[str, Any]:
    config: dict[str, Any] = {} if request.options.format is None else {"format": _format(request.options.format)}
    # A model that decides by itself how much to think is told how hard to try.
    if request.options.reasoning.effort is not None and _thinking(request.model, _mode(request)) == "adaptive":
        config["effort"] = reasoning.of_three(request)
    return config


def _mode(request: ModelRequest) -> ReasoningMode:
    """A model that thinks cannot be made to call a tool: a required call comes without thoughts."""
    must_call = bool(request.tools) and request.options.tool_choice.mode == "required"
    return "off" if must_call else reasoning.mode(request)


def _choice(request: ModelRequest) -> dict[str, Any]:
    choice = request.options.tool_choice
    wanted: dict[str, Any] = {"type": _CHOICES[choice.mode]}
    if choice.name is not None:
        wanted = {"type": "tool", "name": choice.name}
    if not request.options.parallel_tool_calls and choice.mode != "none":
        wanted["disable_parallel_tool_use"] = True
    return {"tool_choice": wanted} if wanted != {"type": "auto"} else {}


def _format(wanted: AnswerFormat) -> dict[str, Any]:
    if wanted.any_object:
        raise GatewayError(Reason.FORMAT_UNSUPPORTED, param=wanted.param, field=wanted.param)
    return {"type": "json_schema", "schema": wanted.schema}


def _thinking(model: str, mode: ReasoningMode) -> str | None:
    family = next((family for pattern, family in _FAMILIES if pattern.search(model)), _TODAY)
    return family.off if mode == "off" else family.on


def _tools(tools: tuple[Tool, ...]) -> list[dict[str, Any]]:
    encoded: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
    ]
    encoded[-1]["cache_control"] = _MARK
    return encoded


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """User and tool messages that follow each other are one user message: all results of a round belong together."""
    encoded: list[dict[str, Any]] = []
    users: list[list[dict[str, Any]]] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            content = _assistant(message)
            if content:
                encoded.append({"role": "assistant", "content": content})
            continue
        if not encoded or encoded[-1]["role"] != "user":
            users.append([])
            encoded.append({"role": "user", "content": users[-1]})
        users[-1] += _result(message) if isinstance(message, ToolMessage) else _user(message)
    for blocks in users[-2:]:
        blocks[-1]["cache_control"] = _MARK
    return encoded


def _assistant(message: AssistantMessage) -> Raw | list[dict[str, Any]]:
    if message.provider_blocks is not None and message.provider_blocks.dialect == DIALECT:
        return _without_blanks(message.provider_blocks.blocks)
    blocks: list[dict[str, Any]] = []
    if message.text and message.text.strip():
        blocks.append({"type": "text", "text": message.text})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in message.tool_calls
    ]
    return blocks


class _Piece(msgspec.Struct):
    type: str = ""
    text: str | None = None


def _without_blanks(blocks: Raw) -> Raw:
    """Pieces as they were given, but for blank texts: the provider gives them, and refuses them."""
    if _BLANK_TEXT.search(blocks) is None:
        return blocks
    pieces = msgspec.json.decode(blocks, type=list[Raw])
    kept = [bytes(piece) for piece in pieces if not _is_blank(piece)]
    return blocks if len(kept) == len(pieces) else Raw(b"[" + b",".join(kept) + b"]")


def _is_blank(piece: Raw) -> bool:
    try:
        read = msgspec.json.decode(piece, type=_Piece)
    except msgspec.MsgspecError:
        return False
    return read.type == "text" and read.text is not None and not read.text.strip()


def _result(message: ToolMessage) -> list[dict[str, Any]]:
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": message.call_id,
        "content": message.content,
    }
    if message.is_error:
        result["is_error"] = True
    return [result]


def _user(message: UserMessage) -> list[dict[str, Any]]:
    return [_part(part) for part in message.parts]


def _part(part: Part) -> dict[str, Any]:
    return {"type": "text", "text": part.text} if isinstance(part, TextPart) else _file(part)


def _file(part: FilePart) -> dict[str, Any]:
    if part.kind == "image" and part.media_type in _IMAGES:
        return {"type": "image", "source": _base64(part)}
    named: dict[str, Any] = {"title": part.name} if part.name else {}
    if part.cite:
        named["citations"] = {"enabled": True}
    if part.media_type == "application/pdf":
        return {"type": "document", "source": _base64(part), **named}
    if part.kind == "document" and part.media_type.startswith("text/"):
        text = part.data.decode("utf-8", "replace") or "(no text)"
        return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}, **named}
    raise shapes.unsupported(part)


def _base64(part: FilePart) -> dict[str, str]:
    return {"type": "base64", "media_type": part.media_type, "data": base64.b64encode(part.data).decode()}
