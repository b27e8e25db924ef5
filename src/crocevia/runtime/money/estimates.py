"""Token counts of our own, for when the provider's never came: a token is about four characters."""

from __future__ import annotations

import msgspec

from crocevia.core.answers import Answer
from crocevia.core.calls import ModelRequest
from crocevia.core.messages import AssistantMessage, Message, ToolMessage
from crocevia.core.usage import Usage

CHARACTERS_PER_TOKEN = 4


def known_usage(request: ModelRequest, answer: Answer) -> Usage:
    """What a cut call consumed: what the provider reported, else our estimate, and never less than reported."""
    reported = answer.usage
    received = _tokens(len(answer.text) + len(answer.reasoning) + sum(len(c.arguments) for c in answer.tool_calls))
    output = max(reported.output_tokens or 0, received)
    prompt = reported.input_tokens
    return msgspec.structs.replace(
        reported,
        input_tokens=_tokens(_prompt(request)) if prompt is None else prompt,
        output_tokens=output,
        estimated=reported.estimated or prompt is None or output != reported.output_tokens,
    )


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def _prompt(request: ModelRequest) -> int:
    tools = sum(len(tool.name) + len(tool.description) + len(tool.parameters) for tool in request.tools)
    return len(request.system or "") + tools + sum(map(_length, request.messages))


def _length(message: Message) -> int:
    if isinstance(message, ToolMessage):
        return len(message.content)
    if isinstance(message, AssistantMessage):
        return len(message.text or "") + sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return len(message.text)
