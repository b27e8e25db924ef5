"""How large texts and messages are, and about how many tokens that makes."""

from __future__ import annotations

from typing import Final

from crocevia.core.calls import ModelRequest
from crocevia.core.messages import AssistantMessage, Message, ToolMessage

CAUTIOUS: Final = 3  # characters to a token in JSON and many languages: for bounds
_USUAL: Final = 4


def tokens(characters: int, each: int = _USUAL) -> int:
    """About how many tokens a text of this length has, rounded up. each: characters of one."""
    return -(-characters // each)


def characters(message: Message) -> int:
    """Of a message's text and tool calls; files apart."""
    if isinstance(message, ToolMessage):
        return len(message.content)
    if isinstance(message, AssistantMessage):
        return len(message.text or "") + sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return len(message.text)


def frame(request: ModelRequest) -> int:
    """Characters of a request's instructions and tools."""
    tools = sum(len(tool.name) + len(tool.description) + len(tool.parameters) for tool in request.tools)
    return len(request.system or "") + tools
