"""What a script can see of a call."""

from __future__ import annotations

import re
from itertools import takewhile

import msgspec

from crocevia.core.calls import ModelRequest
from crocevia.core.messages import AssistantMessage, ToolMessage, UserMessage

_PLACEHOLDER = re.compile(r"\{(last_user|tool_result)\}")


class RequestView(msgspec.Struct, frozen=True, kw_only=True):
    """nth: which call of the conversation this is, from 1. results: (tool, content) of the newest tool messages."""

    request: ModelRequest
    last_user: str
    results: tuple[tuple[str, str], ...]
    nth: int

    def fill(self, template: str) -> str:
        """`template` with {last_user} and {tool_result} replaced, once: what is put in is not read again."""
        known = {"last_user": self.last_user, "tool_result": "\n".join(content for _, content in self.results)}
        return _PLACEHOLDER.sub(lambda found: known[found[1]], template)


def look(request: ModelRequest) -> RequestView:
    """The view of a request."""
    messages = request.messages
    assistants = [message for message in messages if isinstance(message, AssistantMessage)]
    names = {call.id: call.name for message in assistants for call in message.tool_calls}
    newest = takewhile(lambda message: isinstance(message, ToolMessage), reversed(messages))
    results = [(names.get(m.call_id, ""), m.content) for m in newest if isinstance(m, ToolMessage)]
    users = (message.text for message in reversed(messages) if isinstance(message, UserMessage))
    return RequestView(
        request=request,
        last_user=next(users, ""),
        results=tuple(reversed(results)),
        nth=len(assistants) + 1,
    )
