"""Pure questions about a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from crocevia.core.messages import AssistantMessage, Message, ToolMessage


def open_round(messages: Sequence[Message]) -> tuple[int, ...]:
    """Where the assistant messages of the tool round are that the model has not finished yet; empty if it has.

    A round begins after a user message and takes in every call and result since; it is open until the model has
    spoken without asking for a tool. What a user adds to the last results does not close it.
    """
    last = len(messages) - 1
    while last >= 0 and not isinstance(messages[last], AssistantMessage):
        last -= 1
    found: list[int] = []
    for index in range(last, -1, -1):
        message = messages[index]
        if isinstance(message, AssistantMessage) and message.tool_calls:
            found.append(index)
        elif not isinstance(message, ToolMessage):
            break
    return tuple(reversed(found))
